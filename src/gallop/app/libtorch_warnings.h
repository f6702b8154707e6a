#pragma once

#include <functional>
#include <set>
#include <string>

#include <c10/util/Exception.h>

namespace gallop::app {

/// While it lives, reports the warnings of LibTorch on this thread, and on those of the backward
/// passes that it starts: each text once, in one line.
class LibtorchWarnings final : public c10::WarningHandler {
 public:
  using Report = std::function<void(const std::string& line)>;
  explicit LibtorchWarnings(Report report);
  LibtorchWarnings(const LibtorchWarnings&) = delete;
  LibtorchWarnings& operator=(const LibtorchWarnings&) = delete;

  void process(const c10::Warning& warning) override;

 private:
  Report report_;
  std::set<std::string> reported_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace gallop::app

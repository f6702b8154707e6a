#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/track/footprint.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/http/guard.h"
#include "gallop/ui/http/message.h"
#include "gallop/ui/runs.h"

namespace gallop::ui {

struct SiteConfig {
  fs::path runs;                       ///< Their folder.
  fs::path studies{};                  ///< That of sweeps; may be missing.
  std::string version;                 ///< Of Gallop.
  int port = 0;                        ///< At which it can be reached.
  std::vector<std::string> names{};    ///< See http::Guard.
  track::Surroundings surroundings{};  ///< By which energy becomes CO2 and money.
};

/// The page and its API, without sockets.
class Site {
 public:
  /// Throws UsageError where there is neither folder.
  explicit Site(const SiteConfig& config);

  /// The answer to who may not ask, or asks for what cannot be; nothing for all others.
  std::optional<http::Response> refuse(const http::Request& request) const;
  /// The answer to who may.
  http::Response answer(const http::Request& request);

 private:
  struct File {
    std::string_view bytes, type;
    std::string tag;  ///< Its ETag.
  };

  http::Response file_response(const File& file, const http::Request& request) const;

  Runs runs_;
  Sweeps sweeps_;
  api::EventHub events_;
  http::Guard guard_;
  api::Context context_;
  std::map<std::string, File, std::less<>> files_;
};

}  // namespace gallop::ui

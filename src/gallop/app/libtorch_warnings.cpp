#include "gallop/app/libtorch_warnings.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/train/determinism.h"

namespace gallop::app {

LibtorchWarnings::LibtorchWarnings(Report report) : report_(std::move(report)), guard_(this) {}

void LibtorchWarnings::process(const c10::Warning& warning) {
  const std::string& text = warning.msg();
  const std::string op = train::nondeterministic_operator(text);
  const std::string line =
      op.empty() ? "LibTorch: " + text.substr(0, text.find('\n'))
                 : fmt::format(
                       "{} has no deterministic implementation on a GPU: results are not "
                       "repeatable bit for bit, not even those of a resumed run",
                       op);
  if (reported_.insert(line).second) report_(line);
}

}  // namespace gallop::app

#include "gallop/train/determinism.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::train {

namespace {

// The message of at::Context::alertNotDeterministic(), which puts the operator's name before it.
constexpr std::string_view kMessage = " does not have a deterministic implementation";

}  // namespace

std::string nondeterministic_operator(std::string_view message) {
  const size_t end = message.find(kMessage);
  if (end == std::string_view::npos) return {};
  const size_t space = message.find_last_of(" \n", end == 0 ? 0 : end - 1);
  const size_t begin = space == std::string_view::npos ? 0 : space + 1;
  return std::string(message.substr(begin, end - begin));
}

void rethrow_nondeterminism() {
  const auto rethrow = [](std::string_view message) {
    const std::string op = nondeterministic_operator(message);
    if (op.empty()) throw;
    throw UsageError(
        fmt::format("{} has no deterministic implementation on a GPU; set train.deterministic=warn "
                    "to use it; results are then not repeatable bit for bit",
                    op));
  };
  try {
    throw;
  } catch (const c10::Error& error) {
    rethrow(error.what_without_backtrace());
  } catch (const UsageError& error) {  // Thrown by an operator of an exported model.
    rethrow(error.what());
  }
  throw;
}

}  // namespace gallop::train

#pragma once

#include <functional>

#include "gallop/base/error.h"

namespace gallop::app {

/// Calls `program` and returns its exit code, or prints the error that it throws on standard error
/// and returns that error's. Errors of rank 0 are printed by rank 0 alone.
ExitCode report_errors(const std::function<ExitCode()>& program);

}  // namespace gallop::app

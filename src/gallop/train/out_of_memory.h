#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "gallop/base/error.h"

namespace gallop::train {

/// What an allocator says that had no memory to give, in one line; nothing for any other error.
std::optional<std::string> out_of_memory(const std::exception_ptr& error);

/// Does the work. Returns what out_of_memory() says where that ended it; other errors pass.
std::optional<std::string> run_in_memory(const std::function<void()>& work);

/// A step that cannot be computed with the memory that there is. Weights, statistics and what the
/// optimizer keeps are as before the step.
class StepDoesNotFit : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

}  // namespace gallop::train

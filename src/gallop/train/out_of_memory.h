#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "gallop/base/error.h"

namespace gallop::train {

/// The message of an allocation failure, in one line; nothing for any other error.
std::optional<std::string> out_of_memory(const std::exception_ptr& error);

/// Calls `work`. Returns the message of out_of_memory() if that ended it; other errors propagate.
/// The activations of a backward pass that failed are freed.
std::optional<std::string> run_in_memory(const std::function<void()>& work);

/// A step that cannot be computed with the available memory. Weights, statistics and optimizer
/// state are as before the step.
class StepDoesNotFit : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

}  // namespace gallop::train

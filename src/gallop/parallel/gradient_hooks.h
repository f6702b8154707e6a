#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::parallel {

/// While it lives, calls a function whenever a backward pass has given one of the parameters its
/// gradient, with the parameter's number in the list. A parameter has one such hook at a time.
class GradientHooks {
 public:
  GradientHooks(std::vector<at::Tensor> parameters, const std::function<void(size_t)>& call);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  std::vector<at::Tensor> parameters_;
};

}  // namespace gallop::parallel

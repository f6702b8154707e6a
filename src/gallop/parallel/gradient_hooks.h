#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::parallel {

/// While it lives, calls a function with the index of a parameter in the list whenever a backward
/// pass has produced its gradient. A parameter has one such hook at a time.
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

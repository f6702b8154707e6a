#pragma once

#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace gallop::compile {

/// States of random generators, each as it was when it was first kept.
class KeptGenerators {
 public:
  void keep(const at::Generator& generator);
  /// Keeps the default generator of a device that has one.
  void keep_default(c10::Device device);
  void restore();

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> kept_;
};

}  // namespace gallop::compile

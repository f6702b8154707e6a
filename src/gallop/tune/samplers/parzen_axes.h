#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/tune/random.h"
#include "gallop/tune/samplers/kernel_sum.h"
#include "gallop/tune/space.h"

namespace gallop::tune {

/// One parameter of the kernels of a ParzenEstimator. Kernels are known by their position in the
/// order of their trials; the prior stands behind the last.
class ParzenAxis {
 public:
  virtual ~ParzenAxis() = default;

  virtual void insert(size_t position, int64_t trial, double value) = 0;
  virtual void erase(size_t position, int64_t trial) = 0;
  /// Computes again what follows from the kernels after some came or went. `trials` are those of
  /// all kernels, rising; `narrowing` is ParzenEstimator's.
  virtual void refresh(const std::vector<int64_t>& trials, double narrowing) = 0;

  /// What a kernel is: center and deviation of a number, or the probability of each choice.
  virtual std::vector<double> kernel(size_t position) const = 0;
  /// A value of the kernel.
  virtual double draw(size_t kernel, Random& random) const = 0;
  /// What the axis brings into the kernels' densities, and into a query for this value.
  virtual void describe(KernelColumns& columns, std::vector<double>& constants) const = 0;
  virtual void describe(KernelQuery& query, double value) const = 0;
};

/// The axis of a parameter with more than one value.
std::unique_ptr<ParzenAxis> make_axis(const Parameter& parameter);

}  // namespace gallop::tune

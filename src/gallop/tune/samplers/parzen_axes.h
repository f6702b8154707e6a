#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/tune/random.h"
#include "gallop/tune/samplers/kernel_sum.h"
#include "gallop/tune/space.h"

namespace gallop::tune {

/// One parameter of a ParzenEstimator. Kernels are indexed by their position in the order of their
/// trials; the prior is last.
class ParzenAxis {
 public:
  virtual ~ParzenAxis() = default;

  virtual void insert(size_t position, int64_t trial, double value) = 0;
  virtual void erase(size_t position, int64_t trial) = 0;
  /// Recomputes derived state after kernels were added or removed. `trials` are those of all
  /// kernels, ascending; `narrowing` is ParzenEstimator's.
  virtual void refresh(const std::vector<int64_t>& trials, double narrowing) = 0;

  /// The kernel: center and deviation of a number, or the probability of each choice.
  virtual std::vector<double> kernel(size_t position) const = 0;
  /// Samples a kernel.
  virtual double draw(size_t kernel, Random& random) const = 0;
  /// Adds this axis to the kernels' columns, and below to a query for this value.
  virtual void describe(KernelColumns& columns, std::vector<double>& constants) const = 0;
  virtual void describe(KernelQuery& query, double value) const = 0;
};

/// Creates the axis of a parameter with more than one value.
std::unique_ptr<ParzenAxis> make_axis(const Parameter& parameter);

}  // namespace gallop::tune

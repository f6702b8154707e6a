#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/data/samples.h"

namespace gallop::data {

/// The input and the target of a sample.
struct Sample {
  at::Tensor input;
  at::Tensor target;
};

/// A function that computes a sample, on the CPU. A pure function of its arguments, which several
/// threads call at once.
using SampleFunction = std::function<Sample(int64_t index, int64_t epoch)>;

/// Samples that a function computes: "input" and "target". The first one, of epoch 0, sets the
/// sizes and types of all.
class FunctionSamples final : public Samples {
 public:
  /// `classes`: targets are labels below it, int64 []; 0: they are numbers, float [] or [D]. Throws
  /// UsageError if there is no sample, or if the first has other targets or is not on the CPU.
  FunctionSamples(int64_t size, const SampleFunction& function, int64_t classes);

  int64_t size() const override { return size_; }
  bool every_target_counts() const override { return classes_ > 0; }
  /// Throws DataError if the sample has other sizes or types than the first, or no valid label.
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override;

 private:
  FunctionSamples(int64_t size, const Sample& first, const SampleFunction& function,
                  int64_t classes);

  int64_t size_;
  SampleFunction function_;
  int64_t classes_;
  std::vector<int64_t> target_sizes_;  // As the function returns them: [] for a single number.
};

}  // namespace gallop::data

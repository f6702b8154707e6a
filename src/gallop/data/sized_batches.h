#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/data/batch_plan.h"
#include "gallop/data/samples.h"

namespace gallop::data {

/// Batches for an evaluation of samples that have inputs of different sizes
/// (Samples::input_sizes()): samples are sorted by size, and a batch has samples of one size only.
class SizedBatches final : public BatchPlan {
 public:
  SizedBatches(const Samples& samples, int64_t batch);

  /// The sample at a position.
  int64_t index(int64_t position) const { return order_[static_cast<size_t>(position)]; }
  /// The position of the first sample of a batch.
  int64_t begin(int64_t number) const { return begins_[static_cast<size_t>(number)]; }
  int64_t end(int64_t epoch, int64_t position) const override;
  int64_t batches() const override { return static_cast<int64_t>(begins_.size()) - 1; }
  int64_t most_samples() const override { return most_samples_; }

 private:
  std::vector<int64_t> order_, begins_;  // Indices; positions, the last of which is the end.
  int64_t most_samples_ = 0;
};

/// The samples in the order of the batches.
class SizedSamples final : public Samples {
 public:
  /// Both must outlive the samples.
  SizedSamples(const Samples& samples, const SizedBatches& batches)
      : Samples(samples.fields()), samples_(samples), batches_(batches) {}

  int64_t size() const override { return samples_.size(); }
  bool every_target_counts() const override { return samples_.every_target_counts(); }
  bool has_own_order() const override { return true; }
  std::vector<int64_t> input_sizes(int64_t index) const override {
    return samples_.input_sizes(batches_.index(index));
  }
  std::string describe(int64_t index) const override {
    return samples_.describe(batches_.index(index));
  }
  std::unique_ptr<Scratch> make_scratch() const override { return samples_.make_scratch(); }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override {
    return samples_.fill(batches_.index(index), epoch, row, scratch);
  }

 private:
  const Samples& samples_;
  const SizedBatches& batches_;
};

}  // namespace gallop::data

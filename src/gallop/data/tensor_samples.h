#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/data/samples.h"

namespace gallop::data {

/// Samples from two tensors in memory, "input" and "target", with one row per sample.
class TensorSamples final : public Samples {
 public:
  /// Both are on the CPU with equal first dimensions and are copied if not contiguous. Throws
  /// UsageError if their shapes do not match.
  TensorSamples(const at::Tensor& inputs, const at::Tensor& targets);

  int64_t size() const override { return inputs_.size(0); }
  bool every_target_counts() const override { return counts_; }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override;

 private:
  at::Tensor inputs_, targets_;
  bool counts_;  ///< Targets are labels, none of which is ignored.
};

/// Samples with several owners.
class SharedSamples final : public Samples {
 public:
  explicit SharedSamples(std::shared_ptr<const Samples> samples)
      : Samples(samples->fields()), samples_(std::move(samples)) {}

  int64_t size() const override { return samples_->size(); }
  bool every_target_counts() const override { return samples_->every_target_counts(); }
  bool has_own_order() const override { return samples_->has_own_order(); }
  int64_t window_blocks() const override { return samples_->window_blocks(); }
  int64_t block(int64_t index) const override { return samples_->block(index); }
  std::optional<int64_t> label(int64_t index) const override { return samples_->label(index); }
  std::vector<int64_t> input_sizes(int64_t index) const override {
    return samples_->input_sizes(index);
  }
  const Samples& source() const override { return samples_->source(); }
  int64_t source_index(int64_t epoch, int64_t index) const override {
    return samples_->source_index(epoch, index);
  }
  std::string describe(int64_t index) const override { return samples_->describe(index); }
  std::unique_ptr<Scratch> make_scratch() const override { return samples_->make_scratch(); }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override {
    return samples_->fill(index, epoch, row, scratch);
  }

 private:
  std::shared_ptr<const Samples> samples_;
};

}  // namespace gallop::data

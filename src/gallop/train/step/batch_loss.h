#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/model.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/train/loss.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/step/config.h"

namespace gallop::train {

/// What losses are divided by if counts do not follow from sizes; otherwise undefined.
struct BatchCounts {
  /// fp64 factors of the sum of each term, of the teacher's and of the model's own loss.
  at::Tensor factors;
  at::Tensor targets;  ///< fp64 scalar: targets of the whole batch that are not ignored.
};

/// The loss that a step minimizes: the terms of StepConfig::loss, that of a teacher, and the
/// model's own loss, each divided by its count over the whole batch.
class BatchLoss {
 public:
  /// Both must outlive this.
  BatchLoss(const model::Model& model, const StepConfig& config);

  /// Whether counts depend on the values of targets, or there are several terms, so that each term
  /// is divided by a count that the device computes. Otherwise StepInputs::loss_weight divides.
  bool counts_on_device() const { return counts_on_device_; }
  bool has_class_labels(const NamedTensors& batch) const;
  /// The count of `rows` such samples if none is ignored or weighted.
  int64_t expected_count(const NamedTensors& batch, int64_t rows) const;

  /// The number of elements of count().
  int64_t counts() const;
  /// The counts of some rows, fp64: of each term, of the teacher, of the model's own loss, and of
  /// targets that are not ignored.
  at::Tensor count(const NamedTensors& batch) const;
  /// `counts`: the sum of count() over the whole batch.
  BatchCounts divisors(const at::Tensor& counts) const;

  /// The losses of a micro-batch. `label_smoothing` replaces the option if it is defined.
  Losses operator()(model::Output output, const NamedTensors& batch, const BatchCounts& counts,
                    const at::Tensor& label_smoothing, bool count_correct) const;

 private:
  at::Tensor own_loss_of_model(const model::Output& output, const NamedTensors& batch,
                               const BatchCounts& counts) const;
  at::Tensor distillation_of(const model::Output& output, const NamedTensors& batch) const;

  const StepConfig& config_;
  bool has_own_loss_;  ///< Model::has_auxiliary_loss()
  std::vector<LossTerm> terms_;
  bool counts_on_device_;
};

}  // namespace gallop::train

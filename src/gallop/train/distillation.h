#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "gallop/config/visitor.h"
#include "gallop/data/text_samples.h"
#include "gallop/model/model.h"

namespace gallop::train {

/// Of the `train:` section: a trained model that this one learns from.
struct DistillConfig {
  std::string teacher;  ///< A run or a checkpoint; empty for none.
  double temperature = 2;
  double weight = 0.5;
};

void visit(config::Visitor& visitor, DistillConfig& config);

/// Throws UsageError for options without a teacher.
void check(const DistillConfig& config);

/// Knowledge distillation (Hinton et al., "Distilling the knowledge in a neural network", 2015):
/// the loss is (1 - weight) times that of the targets and weight times distillation_sum().
struct Distillation {
  model::Model* teacher = nullptr;  ///< In evaluation mode, without gradients.
  double temperature = 2;
  double weight = 0.5;
};

/// T^2 KL(softmax(teacher / T) || softmax(student / T)), summed over the targets that count
/// (`ignored` class labels do not, soft labels do), a scalar: its gradient is as large at any
/// temperature T. Logits [N, C] with target [N], or [N, T, C] with [N, T]. In fp32, or fp64 where
/// the student's logits are.
at::Tensor distillation_sum(const at::Tensor& logits, const at::Tensor& teacher_logits,
                            const at::Tensor& target, double temperature,
                            int64_t ignored = data::kIgnoredTarget);
/// What that sum is divided by, fp64 without dimensions: class labels that count, or rows of soft
/// labels.
at::Tensor distillation_count(const at::Tensor& target, int64_t ignored);

}  // namespace gallop::train

#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "gallop/config/visitor.h"
#include "gallop/data/text_samples.h"
#include "gallop/model/model.h"

namespace gallop::train {

/// Options of knowledge distillation in the `train:` section.
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

/// T^2 KL(softmax(teacher / T) || softmax(student / T)), summed over the targets that count (class
/// labels equal to `ignored` do not, soft labels do), a scalar. The factor T^2 makes gradients
/// independent of the temperature T. Logits [N, C] with target [N], or [N, T, C] with [N, T]. In
/// fp32, or in fp64 if the student's logits are.
at::Tensor distillation_sum(const at::Tensor& logits, const at::Tensor& teacher_logits,
                            const at::Tensor& target, double temperature,
                            int64_t ignored = data::kIgnoredTarget);
/// The divisor of distillation_sum(), fp64 without dimensions: the number of class labels that
/// count, or of rows of soft labels.
at::Tensor distillation_count(const at::Tensor& target, int64_t ignored);

}  // namespace gallop::train

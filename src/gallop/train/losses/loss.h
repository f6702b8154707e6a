#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/component.h"
#include "gallop/data/samples.h"
#include "gallop/model/output.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/train/loss.h"

namespace gallop::train {

class Loss;

/// The loss of some targets; its mean is `sum / count`. Scalars on the targets' device.
struct LossSum {
  at::Tensor sum;    ///< fp32, or fp64 if the outputs are; has a gradient.
  at::Tensor count;  ///< fp64: targets that are not ignored, or the sum of their weights.
};

/// One term of a loss: its mean is multiplied by `weight`.
struct LossTerm {
  double weight = 1;
  const Loss* loss = nullptr;
};

struct LossTraits {
  /// Whether count() equals expected_count() if no target is ignored or weighted.
  bool counts_by_size = false;
  bool can_ignore = false;        ///< Targets equal to `ignored` do not count.
  bool counts_rows = false;       ///< The count is that of class labels, or of rows of soft labels.
  bool predicts_classes = false;  ///< Outputs have one logit per class for every class label.
  bool takes_smoothing = false;   ///< Request::label_smoothing is supported.
  /// In place of class labels, targets may be probabilities of the classes, fp32 [N, C].
  bool takes_soft_labels = false;
  bool needs_whole_batch = false;  ///< The loss of a batch cannot be computed in parts.
  /// The loss of a batch cannot be computed in micro-batches, but by processes that have parts of
  /// the batch, through SharedRows.
  bool compares_samples = false;
  bool is_of_units = true;  ///< Outputs and targets are in the same units, of any scale.
  /// Predictions are numbers that are compared with the targets, and not logits.
  bool predicts_numbers = false;
  /// The field "weight" of a batch multiplies the losses and counts of its samples.
  bool takes_weights = false;
  int64_t ignored = data::kIgnoredTarget;
  /// What makes the loss infinite for some targets, and what to do about it: added to the error.
  const char* infinite_because = "";
  /// The class that stands for no class in outputs that are aligned with sequences of targets.
  std::optional<int64_t> blank{};
};

/// The function to minimize, of a model's output and the named fields of its batch ("input",
/// "target", and what else the data have, such as "weight"; one row per sample), summed over the
/// targets. The sums of the micro-batches of a batch, divided by the sum of their counts, are the
/// mean over the batch. Reads nothing on the host. Immutable and thread-safe.
class Loss {
 public:
  /// What a step requests in addition to the sum.
  struct Request {
    bool count_correct = false;    ///< Correct predictions, if targets are class labels.
    at::Tensor label_smoothing{};  ///< Scalar that replaces the option; undefined: the option.
  };

  virtual ~Loss() = default;

  /// The scalar LossSum::sum. Outputs [N, ...] may leave the last GEMM to the loss.
  virtual at::Tensor sum(const model::Output& output, const NamedTensors& batch) const = 0;
  /// The scalar by which the sum is divided. It depends only on the batch, so that it is known
  /// before the forward pass.
  virtual at::Tensor count(const NamedTensors& batch) const = 0;
  LossSum operator()(const model::Output& output, const NamedTensors& batch) const {
    return {.sum = sum(output, batch), .count = count(batch)};
  }

  /// The sum, and Losses::correct if it is requested and targets are class labels.
  virtual Losses sum_and_correct(const model::Output& output, const NamedTensors& batch,
                                 const Request& request) const;

  virtual LossTraits traits() const { return {}; }
  /// The count of `rows` samples with such targets if none is ignored or weighted: by default one
  /// per element of the target.
  virtual int64_t expected_count(const at::Tensor& target, int64_t rows) const;

  /// The names of the outputs for each target, if these are not its prediction, such as one for
  /// each quantile: outputs then have the sizes of the targets and a last dimension for these.
  virtual std::vector<std::string> output_names() const { return {}; }
  /// What metrics compare with the targets of a batch: by default the outputs, or the first one for
  /// each target if they have names.
  virtual at::Tensor predictions(const at::Tensor& outputs, const NamedTensors& batch) const;

  /// Throws UsageError if the loss is not defined for the values of the data's targets.
  /// `some_targets` reads those of some training samples, [N, ...].
  virtual void check_targets(const std::function<at::Tensor()>& /*some_targets*/) const {}

  /// The terms of a weighted sum of losses; for any other loss, the loss itself with weight 1.
  virtual std::vector<LossTerm> terms() const { return {{1, this}}; }
  /// Tensors on the device that the loss uses in addition to its arguments, such as class weights.
  virtual NamedTensors tensors() const { return {}; }
};

/// Properties of data and model that are known when a loss is made.
struct LossContext {
  /// Per sample: [C], [T, C], [C, H, W]. A size is 0 if the model chooses it: [views, 0] for
  /// embeddings, [0, C] for sequences that are aligned. A dimension for Loss::output_names() is
  /// left out.
  std::vector<int64_t> output_sizes;
  std::vector<int64_t> target_sizes;  ///< Per sample: [], [T], [H, W].
  c10::ScalarType target_type = c10::ScalarType::Long;
  int64_t classes = 0;  ///< Number of classes; 0: targets are not class labels.
  int64_t blank = 0;    ///< A class that is no target, for sequences that are aligned.
  c10::Device device = c10::kCPU;
  double label_smoothing = 0;  ///< `train.label_smoothing`.
  /// Counts the training samples of each class; empty if they have no class label each.
  std::function<std::vector<int64_t>()> class_counts{};
};

/// The `train.loss:` section of a recipe chooses one. Builders throw UsageError if the loss does
/// not support the data's targets or the model's output.
using LossRegistry = config::Registry<Loss, const LossContext&>;

/// Every loss that comes with Gallop.
LossRegistry built_in_losses();

/// Builds the chosen loss. Throws UsageError if `train.label_smoothing` is set and the loss does
/// not support it.
std::shared_ptr<const Loss> build_loss(const LossRegistry& losses, const config::Component& chosen,
                                       const LossContext& context);

/// Cross-entropy of class or soft labels: the default loss of a step.
std::shared_ptr<const Loss> cross_entropy_loss(double label_smoothing = 0);

}  // namespace gallop::train

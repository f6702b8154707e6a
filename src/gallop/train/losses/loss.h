#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/component.h"
#include "gallop/data/text_samples.h"
#include "gallop/model/output.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/train/loss.h"

namespace gallop::train {

class Loss;

/// A loss of some targets: the mean is `sum / count`. Both are scalars on the targets' device.
struct LossSum {
  at::Tensor sum;    ///< fp32, or fp64 where the outputs are; has a gradient.
  at::Tensor count;  ///< fp64: targets that are not ignored, or the sum of their weights.
};

/// One term of a loss: its mean times `weight`.
struct LossTerm {
  double weight = 1;
  const Loss* loss = nullptr;
};

struct LossTraits {
  /// count() is expected_count() wherever no target is ignored and the batch has no "weight".
  bool counts_by_size = false;
  bool can_ignore = false;        ///< Targets that are `ignored` do not count.
  bool counts_rows = false;       ///< The count is of class labels or of rows of soft labels.
  bool predicts_classes = false;  ///< Outputs have a logit of each class for every class label.
  bool takes_smoothing = false;   ///< Request::label_smoothing has a meaning.
  bool compares_samples = false;  ///< A batch cannot be computed in parts.
  int64_t ignored = data::kIgnoredTarget;
};

/// What is minimized: a function of a model's output and the named fields of its batch ("input",
/// "target", and what else the data have, such as "weight"; one row a sample), summed over the
/// targets. Sums of several parts of a batch, divided by the sum of their counts, are the mean over
/// the batch. Nothing is read on the host. Immutable, and safe to share between threads.
class Loss {
 public:
  /// What a step asks for besides the sum.
  struct Request {
    bool count_correct = false;    ///< Correct predictions, if targets are class labels.
    at::Tensor label_smoothing{};  ///< In place of the option, a scalar; undefined: the option.
  };

  virtual ~Loss() = default;

  /// The scalar of LossSum, of outputs [N, ...] that may leave the last product to the loss.
  virtual at::Tensor sum(const model::Output& output, const NamedTensors& batch) const = 0;
  /// The scalar that the sum is divided by. It depends on the batch alone, so that it is known
  /// before the model has run.
  virtual at::Tensor count(const NamedTensors& batch) const = 0;
  LossSum operator()(const model::Output& output, const NamedTensors& batch) const {
    return {.sum = sum(output, batch), .count = count(batch)};
  }

  /// The sum, and Losses::correct where it is asked for and targets are class labels.
  virtual Losses sum_and_correct(const model::Output& output, const NamedTensors& batch,
                                 const Request& request) const;

  virtual LossTraits traits() const { return {}; }
  /// The count of `rows` samples with such targets, none of them ignored or weighted: by default
  /// one for each element of the target.
  virtual int64_t expected_count(const at::Tensor& target, int64_t rows) const;

  /// The means that it is the weighted sum of; by default its own.
  virtual std::vector<LossTerm> terms() const { return {{1, this}}; }
  /// What it computes with besides its arguments, such as class weights, on the device.
  virtual NamedTensors tensors() const { return {}; }
};

/// What is known of data and model when a loss is made.
struct LossContext {
  /// Of one sample: [C], [T, C], [C, H, W]; of embeddings [views, 0], as the model chooses D.
  std::vector<int64_t> output_sizes;
  std::vector<int64_t> target_sizes;  ///< Of one sample: [], [T], [H, W].
  c10::ScalarType target_type = c10::ScalarType::Long;
  int64_t classes = 0;  ///< Targets are class labels below it; 0: they are not.
  c10::Device device = c10::kCPU;
  double label_smoothing = 0;  ///< `train.label_smoothing`.
};

/// The `train.loss:` section of a recipe chooses one. Builders throw UsageError where a loss cannot
/// work with the data's targets or the model's output.
using LossRegistry = config::Registry<Loss, const LossContext&>;

/// Every loss that comes with Gallop.
LossRegistry built_in_losses();

/// Builds the chosen loss. Throws UsageError where `train.label_smoothing` is set and the loss does
/// not have it.
std::shared_ptr<const Loss> build_loss(const LossRegistry& losses, const config::Component& chosen,
                                       const LossContext& context);

/// What evaluations report: null for cross-entropy, of which they have the plain one.
inline std::shared_ptr<const Loss> evaluation_loss(std::shared_ptr<const Loss> loss,
                                                   const config::Component& chosen) {
  return chosen.name() == "cross-entropy" ? nullptr : std::move(loss);
}

/// Cross-entropy of class or soft labels: what a step minimizes unless it is given another loss.
std::shared_ptr<const Loss> cross_entropy_loss(double label_smoothing = 0);

}  // namespace gallop::train

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/train/losses/loss.h"

// Helpers of losses: fields by name, the class dimension, and checks of the data.
//
// The class dimension of outputs with up to three dimensions is the last ([N, C], [N, T, C]); for
// images and volumes it is the second, as in PyTorch ([N, C, H, W]).
namespace gallop::train {

/// A field of a batch. Throws UsageError if the batch has none of that name.
const at::Tensor& field_of(const NamedTensors& batch, std::string_view name);
/// A field of a batch; undefined if the batch has none of that name.
at::Tensor optional_field(const NamedTensors& batch, std::string_view name);
/// The number of samples of a batch.
int64_t rows_of(const NamedTensors& batch);

/// The field "weight" of a batch with the sizes of `target`: a sample's weight is that of each of
/// its targets. Undefined if the batch has no weights.
at::Tensor weights_by_target(const NamedTensors& batch, const at::Tensor& target);
/// The same for class labels, or the rows of soft labels: [M].
at::Tensor weights_by_row(const NamedTensors& batch, const at::Tensor& target);
/// The same for losses of whole samples: [N]. Throws UsageError if a sample has several weights.
at::Tensor weights_by_sample(const NamedTensors& batch);
/// The sum of `values`, multiplied by `weights` of the same sizes unless these are undefined.
at::Tensor weighted_total(const at::Tensor& values, const at::Tensor& weights);
/// The count of a loss of whole samples: their number, or the sum of their weights.
at::Tensor count_samples(const NamedTensors& batch);

/// `more` added to a sum that is undefined at first.
at::Tensor sum_of(const at::Tensor& sum, const at::Tensor& more);

/// Unchanged if it is fp64, else converted to fp32.
at::Tensor widened(const at::Tensor& tensor);
/// Outputs with the sizes of the targets and a last dimension of `count`. Throws UsageError if a
/// model gives another number of outputs.
at::Tensor outputs_by_target(const at::Tensor& outputs, const at::Tensor& target, int64_t count);
/// A count that follows from sizes, as a scalar on the device of `like`.
at::Tensor count_tensor(int64_t count, const at::Tensor& like);

/// The class dimension of outputs, or of soft labels of the same sizes.
int64_t class_dimension(const at::Tensor& logits);
/// Moves the class dimension to the end.
at::Tensor classes_last(const at::Tensor& logits);
/// The logits as a matrix [M, C].
at::Tensor class_rows(const at::Tensor& logits);
/// Class labels [M], in which `ignored` is replaced by data::kIgnoredTarget.
at::Tensor label_rows(const at::Tensor& target, int64_t ignored);
/// The number of class labels that are neither `ignored` nor data::kIgnoredTarget, fp64 without
/// dimensions.
at::Tensor count_labels(const at::Tensor& target, int64_t ignored);
/// The number of classes of output sizes without the batch dimension.
int64_t classes_of(const std::vector<int64_t>& output_sizes);
/// Values as an fp64 tensor on the device; undefined if there are none.
at::Tensor option_tensor(const std::vector<double>& values, c10::Device device);

/// "[3, 32, 32]"
std::string text_of(const std::vector<int64_t>& sizes);

/// The checks below throw UsageError, naming the loss, what it needs and what was given.
void require_class_labels(const char* loss, const LossContext& context);
/// Requires floating-point targets of the outputs' sizes, except for dimensions of 1.
void require_values(const char* loss, const LossContext& context);
/// Requires class labels or soft labels.
void require_labels(const char* loss, const LossContext& context);
void require_class_weights(const char* loss, const std::vector<double>& weights,
                           const LossContext& context);
/// Requires targets from `least` to `most`.
void require_range(const char* loss, const at::Tensor& targets, double least, double most);
/// Requires outputs [views, D] per sample; with `or_more`, there may be more views.
void require_views(const char* loss, int64_t views, bool or_more, const LossContext& context);

}  // namespace gallop::train

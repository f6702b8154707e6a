#include "gallop/train/losses/shapes.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/full.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"

namespace gallop::train {

namespace {

// Output dimensions of a sample from which it is an image: [C, H, W].
constexpr size_t kDimensionsOfImages = 3;

std::vector<int64_t> without_ones(std::vector<int64_t> sizes) {
  sizes.erase(std::remove(sizes.begin(), sizes.end(), 1), sizes.end());
  return sizes;
}

// The sizes of one sample's labels.
std::vector<int64_t> label_sizes(std::vector<int64_t> output_sizes) {
  if (output_sizes.empty()) return {};
  const bool is_image = output_sizes.size() >= kDimensionsOfImages;
  output_sizes.erase(is_image ? output_sizes.begin() : output_sizes.end() - 1);
  return output_sizes;
}

bool is_float(c10::ScalarType type) { return c10::isFloatingType(type); }

std::string describe_targets(const LossContext& context) {
  if (context.classes > 0) return fmt::format("class labels below {}", context.classes);
  return fmt::format("{} numbers of sizes {} a sample",
                     is_float(context.target_type) ? "floating-point" : "whole",
                     text_of(context.target_sizes));
}

}  // namespace

const at::Tensor& field_of(const NamedTensors& batch, std::string_view name) {
  if (const at::Tensor* const field = find_tensor(batch, name)) return *field;
  std::vector<std::string> names;
  for (const NamedTensor& field : batch) names.push_back(field.name);
  throw UsageError(
      fmt::format("the loss reads the field '{}', which the batch does not have; its "
                  "fields: {}",
                  name, fmt::join(names, ", ")));
}

at::Tensor optional_field(const NamedTensors& batch, std::string_view name) {
  const at::Tensor* const field = find_tensor(batch, name);
  return field == nullptr ? at::Tensor() : *field;
}

int64_t rows_of(const NamedTensors& batch) { return batch.front().tensor.size(0); }

at::Tensor weights_by_target(const NamedTensors& batch, const at::Tensor& target) {
  const at::Tensor weight = optional_field(batch, "weight");
  if (!weight.defined()) return {};
  std::vector<int64_t> sizes = weight.sizes().vec();
  sizes.resize(static_cast<size_t>(target.dim()), 1);
  return weight.reshape(sizes).expand(target.sizes());
}

at::Tensor weights_by_row(const NamedTensors& batch, const at::Tensor& target) {
  const at::Tensor weights = weights_by_target(batch, target);
  if (!weights.defined()) return {};
  return target.is_floating_point() ? class_rows(weights).select(1, 0) : weights.reshape(-1);
}

at::Tensor weights_by_sample(const NamedTensors& batch) {
  const at::Tensor weight = optional_field(batch, "weight");
  if (!weight.defined()) return {};
  if (weight.numel() != rows_of(batch)) {
    throw UsageError(
        fmt::format("train.loss has one value per sample, but the field 'weight' has {} weights "
                    "for {} samples",
                    weight.numel(), rows_of(batch)));
  }
  return weight.reshape(-1);
}

at::Tensor weighted_total(const at::Tensor& values, const at::Tensor& weights) {
  return weights.defined() ? values.mul(weights.to(values.scalar_type())).sum() : values.sum();
}

at::Tensor count_samples(const NamedTensors& batch) {
  const at::Tensor weights = weights_by_sample(batch);
  if (!weights.defined()) return count_tensor(rows_of(batch), batch.front().tensor);
  return weights.to(at::kDouble).sum();
}

at::Tensor sum_of(const at::Tensor& sum, const at::Tensor& more) {
  return sum.defined() ? sum.add(more) : more;
}

at::Tensor widened(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

at::Tensor outputs_by_target(const at::Tensor& outputs, const at::Tensor& target, int64_t count) {
  if (outputs.numel() != target.numel() * count) {
    throw UsageError(fmt::format(
        "train.loss needs {} outputs for each target, but the model has outputs of sizes {} for "
        "targets of sizes {}",
        count, text_of(outputs.sizes().vec()), text_of(target.sizes().vec())));
  }
  std::vector<int64_t> sizes = target.sizes().vec();
  sizes.push_back(count);
  return outputs.reshape(sizes);
}

at::Tensor count_tensor(int64_t count, const at::Tensor& like) {
  return at::full({}, static_cast<double>(count), like.options().dtype(at::kDouble));
}

int64_t class_dimension(const at::Tensor& logits) {
  return static_cast<size_t>(logits.dim()) > kDimensionsOfImages ? 1 : -1;
}

at::Tensor classes_last(const at::Tensor& logits) {
  return class_dimension(logits) == 1 ? logits.movedim(1, -1) : logits;
}

at::Tensor class_rows(const at::Tensor& logits) {
  const at::Tensor last = classes_last(logits);
  return last.reshape({-1, last.size(-1)});
}

at::Tensor label_rows(const at::Tensor& target, int64_t ignored) {
  at::Tensor labels = target.reshape(-1);
  if (ignored == data::kIgnoredTarget) return labels;
  return labels.masked_fill(labels.eq(ignored), data::kIgnoredTarget);
}

at::Tensor count_labels(const at::Tensor& target, int64_t ignored) {
  return label_rows(target, ignored).ne(data::kIgnoredTarget).sum().to(at::kDouble);
}

int64_t classes_of(const std::vector<int64_t>& output_sizes) {
  if (output_sizes.empty()) return 1;
  return output_sizes.size() >= kDimensionsOfImages ? output_sizes.front() : output_sizes.back();
}

at::Tensor option_tensor(const std::vector<double>& values, c10::Device device) {
  if (values.empty()) return {};
  return at::tensor(values, at::kDouble).to(device);
}

std::string text_of(const std::vector<int64_t>& sizes) {
  std::vector<std::string> words;
  for (const int64_t size : sizes) words.push_back(size > 0 ? std::to_string(size) : "D");
  return fmt::format("[{}]", fmt::join(words, ", "));
}

void require_class_labels(const char* loss, const LossContext& context) {
  if (context.classes > 0 && label_sizes(context.output_sizes) == context.target_sizes) return;
  throw UsageError(fmt::format(
      "train.loss: {} needs a class label for each prediction, but the outputs of a sample have "
      "sizes {}, and its targets are {}",
      loss, text_of(context.output_sizes), describe_targets(context)));
}

void require_values(const char* loss, const LossContext& context) {
  if (is_float(context.target_type) &&
      without_ones(context.output_sizes) == without_ones(context.target_sizes)) {
    return;
  }
  throw UsageError(
      fmt::format("train.loss: {} compares each output with a floating-point target, but the "
                  "outputs of a sample have sizes {}, and its targets are {}{}",
                  loss, text_of(context.output_sizes), describe_targets(context),
                  context.classes > 0 ? "; for class labels use cross-entropy or focal" : ""));
}

void require_labels(const char* loss, const LossContext& context) {
  if (!is_float(context.target_type)) return require_class_labels(loss, context);
  if (context.output_sizes == context.target_sizes) return;
  throw UsageError(fmt::format(
      "train.loss: {} needs a target for each output, but the outputs of a sample have sizes {}, "
      "and its targets are {}",
      loss, text_of(context.output_sizes), describe_targets(context)));
}

void require_class_weights(const char* loss, const std::vector<double>& weights,
                           const LossContext& context) {
  const int64_t classes = classes_of(context.output_sizes);
  if (weights.empty() || static_cast<int64_t>(weights.size()) == classes) return;
  throw UsageError(
      fmt::format("train.loss.class_weights of {} has {} numbers, but there are {} classes; give "
                  "one for each class",
                  loss, weights.size(), classes));
}

void require_range(const char* loss, const at::Tensor& targets, double least, double most) {
  if (targets.numel() == 0) return;
  const double smallest = targets.min().item<double>(), largest = targets.max().item<double>();
  if (smallest >= least && largest <= most) return;
  throw UsageError(fmt::format(
      "train.loss: {} needs targets {}, but the training data have targets from {:.6g} to {:.6g}; "
      "for other numbers use a loss such as mse",
      loss,
      std::isinf(most) ? fmt::format("of at least {:g}", least)
                       : fmt::format("from {:g} to {:g}", least, most),
      smallest, largest));
}

void require_views(const char* loss, int64_t views, bool or_more, const LossContext& context) {
  const auto& sizes = context.output_sizes;
  if (sizes.size() == 2 && (sizes[0] == views || (or_more && sizes[0] > views))) return;
  throw UsageError(fmt::format(
      "train.loss: {} needs {}{} embeddings for each sample, outputs of sizes [{}, D], but they "
      "have sizes {}",
      loss, views, or_more ? " or more" : "", views, text_of(sizes)));
}

}  // namespace gallop::train

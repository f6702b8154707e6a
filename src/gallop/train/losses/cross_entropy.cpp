#include "gallop/train/losses/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/core/Reduction.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

class CrossEntropy final : public Loss {
 public:
  CrossEntropy(CrossEntropyConfig config, const std::vector<double>& weights,
               const std::vector<double>& adjustment, c10::Device device)
      : config_(std::move(config)),
        weights_(option_tensor(weights, device)),
        adjustment_(option_tensor(adjustment, device)) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    return sum_and_correct(output, batch, {}).sum;
  }

  Losses sum_and_correct(const model::Output& output, const NamedTensors& batch,
                         const Request& request) const override {
    const at::Tensor& target = field_of(batch, "target");
    const bool is_soft = target.is_floating_point();
    const at::Tensor row_weights = weights_by_row(batch, target);
    if (adjustment_.defined()) return adjusted(output.logits(), target, row_weights, request);
    if (weights_.defined() || row_weights.defined()) {
      return weighted(output.logits(), target, row_weights, request);
    }
    // Kernels need the class dimension of an image at the end.
    const bool is_image = !output.weight.defined() && output.x.dim() > 3;
    const model::Output rows = is_image ? model::Output{classes_last(output.x)} : output;
    const at::Tensor labels =
        is_soft ? (is_image ? classes_last(target) : target) : plain_labels(target, is_image);
    if (request.label_smoothing.defined()) {
      return cross_entropy_sum(rows, labels, request.label_smoothing, request.count_correct);
    }
    return cross_entropy_sum(rows, labels, config_.label_smoothing, request.count_correct);
  }

  at::Tensor count(const NamedTensors& batch) const override {
    const at::Tensor& target = field_of(batch, "target");
    const at::Tensor row_weights = weights_by_row(batch, target);
    if (target.is_floating_point()) {
      if (row_weights.defined()) return row_weights.to(at::kDouble).sum();
      return count_tensor(expected_count(target, target.size(0)), target);
    }
    if (!weights_.defined() && !row_weights.defined()) {
      return count_labels(target, config_.ignore_index);
    }
    const at::Tensor labels = label_rows(target, config_.ignore_index);
    at::Tensor counts = labels.ne(data::kIgnoredTarget).to(at::kDouble);
    if (weights_.defined()) counts = weights_.index_select(0, labels.clamp_min(0)).mul(counts);
    return weighted_total(counts, row_weights);
  }

  int64_t expected_count(const at::Tensor& target, int64_t rows) const override {
    const int64_t elements = Loss::expected_count(target, rows);
    if (!target.is_floating_point()) return elements;
    return elements / target.size(class_dimension(target));
  }

  LossTraits traits() const override {
    return {.counts_by_size = !weights_.defined() && config_.ignore_index == data::kIgnoredTarget,
            .can_ignore = true,
            .counts_rows = true,
            .predicts_classes = true,
            .takes_smoothing = true,
            .takes_soft_labels = true,
            .takes_weights = true,
            .ignored = config_.ignore_index};
  }

  NamedTensors tensors() const override {
    NamedTensors all;
    if (weights_.defined()) all.push_back({"loss.class_weights", weights_});
    if (adjustment_.defined()) all.push_back({"loss.logit_adjustment", adjustment_});
    return all;
  }

 private:
  at::Tensor plain_labels(const at::Tensor& target, bool is_image) const {
    if (!is_image && config_.ignore_index == data::kIgnoredTarget) return target;
    return label_rows(target, config_.ignore_index);
  }

  // Correct predictions are those of the logits as they are.
  Losses adjusted(const at::Tensor& output, const at::Tensor& target, const at::Tensor& row_weights,
                  const Request& request) const {
    const at::Tensor logits = class_rows(output);
    const at::Tensor moved = widened(logits).add(adjustment_.to(widened(logits).scalar_type()));
    Request of_sum = request;
    of_sum.count_correct = false;
    const bool is_soft = target.is_floating_point();
    const at::Tensor labels =
        is_soft ? class_rows(target) : label_rows(target, config_.ignore_index);
    Losses losses;
    if (weights_.defined() || row_weights.defined()) {
      losses = weighted(moved, labels, row_weights, of_sum);
    } else if (request.label_smoothing.defined()) {
      losses = cross_entropy_sum({moved}, labels, request.label_smoothing, false);
    } else {
      losses = cross_entropy_sum({moved}, labels, config_.label_smoothing, false);
    }
    if (request.count_correct && !is_soft) {
      losses.correct = logits.detach().argmax(1).eq(labels).sum();
    }
    return losses;
  }

  // With class weights, weights of rows, or both.
  Losses weighted(const at::Tensor& output, const at::Tensor& target, const at::Tensor& row_weights,
                  const Request& request) const {
    const at::Tensor logits = class_rows(output);
    at::Tensor logs = at::log_softmax(widened(logits), 1);
    // A row's loss is linear in its logarithms.
    if (row_weights.defined()) logs = logs.mul(row_weights.to(logs.scalar_type()).unsqueeze(1));
    std::optional<at::Tensor> weights;
    if (weights_.defined()) weights = weights_.to(logs.scalar_type());
    const auto classes = static_cast<double>(logs.size(1));
    // Interpolates between the labels' losses and the mean over all classes.
    const auto smoothed = [&](const at::Tensor& hard, const at::Tensor& all) {
      const at::Tensor way = all.sum().div(classes).sub(hard);
      return hard.add(request.label_smoothing.defined() ? way.mul(request.label_smoothing)
                                                        : way.mul(config_.label_smoothing));
    };
    const at::Tensor all = (weights ? logs.mul(*weights) : logs).neg();
    if (target.is_floating_point()) {
      const at::Tensor soft = all.mul(class_rows(target).to(logs.scalar_type())).sum();
      return {.sum = smoothed(soft, all), .correct = {}};
    }
    const at::Tensor labels = label_rows(target, config_.ignore_index);
    const at::Tensor hard =
        at::nll_loss(logs, labels, weights, at::Reduction::Sum, data::kIgnoredTarget);
    const at::Tensor ignored = labels.eq(data::kIgnoredTarget).unsqueeze(1);
    Losses losses{.sum = smoothed(hard, all.masked_fill(ignored, 0)), .correct = {}};
    if (request.count_correct) losses.correct = logits.detach().argmax(1).eq(labels).sum();
    return losses;
  }

  CrossEntropyConfig config_;
  at::Tensor weights_, adjustment_;  // fp64 [C], or undefined.
};

std::vector<double> adjustment_of(double factor, const LossContext& context) {
  if (factor == 0) return {};
  if (!context.class_counts) {
    throw UsageError("train.loss.logit_adjustment needs one class label for each training sample");
  }
  const std::vector<int64_t> counts = context.class_counts();
  double all = 0;
  for (const int64_t count : counts) all += static_cast<double>(count);
  std::vector<double> adjustment;
  for (const int64_t count : counts) {
    // A class without samples counts as one with one, so that its logit stays finite.
    const auto share = static_cast<double>(std::max<int64_t>(count, 1)) / all;
    adjustment.push_back(factor * std::log(share));
  }
  return adjustment;
}

// The smoothing of the loss's own option or of `train.label_smoothing`.
double smoothing_of(const CrossEntropyConfig& config, const LossContext& context) {
  const double own = config.label_smoothing, outer = context.label_smoothing;
  if (own > 0 && outer > 0 && own != outer) {
    throw UsageError(
        fmt::format("train.label_smoothing is {}, and train.loss.label_smoothing is {}; leave one "
                    "of them out",
                    outer, own));
  }
  return own > 0 ? own : outer;
}

}  // namespace

void visit(config::Visitor& v, CrossEntropyConfig& c) {
  visit(v, c.classes);
  v.field({.name = "label_smoothing",
           .help = "fraction of the target that is spread over all classes",
           .min = 0,
           .max = 1,
           .below_max = true},
          c.label_smoothing);
  v.field({.name = "ignore_index", .help = "class label of targets to ignore"}, c.ignore_index);
  v.field({.name = "logit_adjustment",
           .help = "factor of the logarithms of the classes' shares of the training samples, which "
                   "are added to the logits in training; 1 for balanced accuracy",
           .min = 0},
          c.logit_adjustment);
}

std::unique_ptr<Loss> make_cross_entropy(const CrossEntropyConfig& config,
                                         const LossContext& context) {
  require_labels("cross-entropy", context);
  CrossEntropyConfig resolved = config;
  resolved.label_smoothing = smoothing_of(config, context);
  const auto weights = class_weights("cross-entropy", config.classes, context);
  const auto adjustment = adjustment_of(config.logit_adjustment, context);
  return std::make_unique<CrossEntropy>(std::move(resolved), weights, adjustment, context.device);
}

std::shared_ptr<const Loss> cross_entropy_loss(double label_smoothing) {
  CrossEntropyConfig config;
  config.label_smoothing = label_smoothing;
  return std::make_shared<CrossEntropy>(std::move(config), std::vector<double>(),
                                        std::vector<double>(), c10::Device(c10::kCPU));
}

}  // namespace gallop::train

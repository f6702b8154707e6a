#include "gallop/train/losses/ctc.h"

#include <functional>
#include <limits>

#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

// log(0), but finite so that differences are finite.
constexpr double kNever = -1e30;

// Shifts `alpha` to the right by `by` columns of kNever.
at::Tensor moved(const at::Tensor& alpha, int64_t by) {
  const at::Tensor columns = at::full({alpha.size(0), by}, kNever, alpha.options());
  return at::cat({columns, alpha.slice(1, 0, alpha.size(1) - by)}, 1);
}

class Ctc final : public Loss {
 public:
  explicit Ctc(const CtcConfig& config) : config_(config) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor logs = at::log_softmax(widened(output.logits()), 2);
    const at::Tensor& target = field_of(batch, "target");
    at::Tensor lengths = optional_field(batch, "target_lengths");
    if (!lengths.defined()) lengths = target.ne(data::kIgnoredTarget).sum(1);
    const at::Tensor losses =
        losses_of(logs, target.clamp_min(0), lengths, optional_field(batch, "input_lengths"));
    const at::Tensor infinite = losses.gt(-kNever / 2);
    const double instead = config_.zero_infinity ? 0 : std::numeric_limits<double>::infinity();
    return weighted_total(
        at::where(infinite, at::full_like(losses, instead), losses).div(lengths.clamp_min(1)),
        weights_by_sample(batch));
  }

  at::Tensor count(const NamedTensors& batch) const override { return count_samples(batch); }
  int64_t expected_count(const at::Tensor&, int64_t rows) const override { return rows; }
  LossTraits traits() const override {
    return {.counts_by_size = true,
            .takes_weights = true,
            .infinite_because =
                ". ctc is infinite for a target that needs more steps than the outputs have; give "
                "outputs more steps, or set train.loss='{name: ctc, zero_infinity: true}'",
            .blank = config_.blank};
  }
  at::Tensor predictions(const at::Tensor& outputs, const NamedTensors& batch) const override {
    return greedy_decode(outputs, config_.blank, optional_field(batch, "input_lengths"));
  }
  void check_targets(const std::function<at::Tensor()>& some_targets) const override {
    if (!some_targets().eq(config_.blank).any().item<bool>()) return;
    throw UsageError(
        fmt::format("train.loss.blank of ctc is {}, but the training data have targets of this "
                    "class; set it to a class that is no target",
                    config_.blank));
  }

 private:
  // The forward recursion over times, for logs [N, T, C] and labels [N, S], at all 2 S + 1 places
  // of the labels with blanks around them.
  at::Tensor losses_of(const at::Tensor& logs, const at::Tensor& labels, const at::Tensor& lengths,
                       const at::Tensor& input_lengths) const {
    const int64_t rows = labels.size(0), times = logs.size(1), places = 2 * labels.size(1) + 1;
    const at::Tensor blanks = at::full_like(labels, config_.blank);
    const at::Tensor blank = at::full({rows, 1}, config_.blank, labels.options());
    const at::Tensor path = at::cat({at::stack({blanks, labels}, 2).reshape({rows, -1}), blank}, 1);
    const at::Tensor likely = logs.gather(2, path.unsqueeze(1).expand({rows, times, places}));
    const at::Tensor never = at::full({rows, places}, kNever, logs.options());
    const at::Tensor place = at::arange(places, labels.options());
    // A label is reached from the preceding label if they differ.
    const at::Tensor before = at::cat({blank, blank, path}, 1).slice(1, 0, places);
    const at::Tensor skips = path.ne(config_.blank).logical_and(path.ne(before));
    at::Tensor alpha = at::where(place.lt(2).unsqueeze(0), likely.select(1, 0), never);
    for (int64_t time = 1; time < times; ++time) {
      const at::Tensor skipped = at::where(skips, moved(alpha, 2), never);
      const at::Tensor next = at::logsumexp(at::stack({alpha, moved(alpha, 1), skipped}, 0), {0})
                                  .add(likely.select(1, time));
      alpha = input_lengths.defined() ? at::where(input_lengths.gt(time).unsqueeze(1), next, alpha)
                                      : next;
    }
    // An alignment ends with the last label, or with the blank after it.
    const at::Tensor end = lengths.mul(2).unsqueeze(1);
    const at::Tensor ends =
        place.unsqueeze(0).eq(end).logical_or(place.unsqueeze(0).eq(end.sub(1)));
    return at::logsumexp(at::where(ends, alpha, never), {1}).neg();
  }

  CtcConfig config_;
};

}  // namespace

void visit(config::Visitor& v, CtcConfig& c) {
  v.field({.name = "blank",
           .help = "class index of the blank label; -1: 0, or the last class if 0 is a target",
           .min = -1},
          c.blank);
  v.field({.name = "zero_infinity",
           .help = "targets that are too long for the outputs have no loss instead of an infinite "
                   "one"},
          c.zero_infinity);
}

std::unique_ptr<Loss> make_ctc(const CtcConfig& config, const LossContext& context) {
  const auto& outputs = context.output_sizes;
  if (outputs.size() != 2 || context.target_sizes.size() != 1 ||
      c10::isFloatingType(context.target_type)) {
    throw UsageError(fmt::format(
        "train.loss: ctc aligns sequences of class labels with outputs [T, C] of each sample, but "
        "its outputs have sizes {}, and its targets {}; the task sequence-recognition has them",
        text_of(outputs), text_of(context.target_sizes)));
  }
  if (config.blank >= outputs.back()) {
    throw UsageError(fmt::format("train.loss.blank is {}, but there are {} classes (0 to {})",
                                 config.blank, outputs.back(), outputs.back() - 1));
  }
  CtcConfig chosen = config;
  if (chosen.blank < 0) chosen.blank = context.blank;
  return std::make_unique<Ctc>(chosen);
}

at::Tensor greedy_decode(const at::Tensor& outputs, int64_t blank,
                         const at::Tensor& input_lengths) {
  const at::Tensor best = outputs.detach().argmax(2).cpu().contiguous();
  const int64_t rows = best.size(0), times = best.size(1);
  at::Tensor lengths = at::full({rows}, times, at::kLong);
  if (input_lengths.defined()) lengths = input_lengths.detach().cpu().to(at::kLong).contiguous();
  at::Tensor decoded = at::full({rows, times}, data::kIgnoredTarget, at::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t length = lengths.const_data_ptr<int64_t>()[row];
    if (length > times) {
      throw UsageError(fmt::format(
          "input_lengths has {}, but outputs have {} steps; it counts steps of the outputs", length,
          times));
    }
    const auto* const classes = best.const_data_ptr<int64_t>() + row * times;
    auto* to = decoded.mutable_data_ptr<int64_t>() + row * times;
    for (int64_t time = 0; time < length; ++time) {
      if (classes[time] == blank || (time > 0 && classes[time] == classes[time - 1])) continue;
      *to++ = classes[time];
    }
  }
  return decoded;
}

}  // namespace gallop::train

#include "gallop/train/losses/weighted_sum.h"

#include <functional>
#include <utility>

#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

class WeightedSum final : public Loss {
 public:
  struct Member {
    double weight;
    std::unique_ptr<Loss> loss;
  };
  explicit WeightedSum(std::vector<Member> members) : members_(std::move(members)) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    at::Tensor mean;
    for (const auto& [weight, loss] : members_) {
      const auto [sum, count] = (*loss)(output, batch);
      const at::Tensor term = sum.div(count.to(sum.scalar_type())).mul(weight);
      mean = sum_of(mean, term);
    }
    return mean.mul(count(batch).to(mean.scalar_type()));
  }
  at::Tensor count(const NamedTensors& batch) const override {
    return members_.front().loss->count(batch);
  }

  // The traits that hold for all members, or for any of them.
  LossTraits traits() const override {
    LossTraits all{.takes_soft_labels = true, .takes_weights = true};
    for (const LossTerm& term : terms()) {
      const LossTraits one = term.loss->traits();
      if (one.predicts_classes && !all.predicts_classes) all.ignored = one.ignored;
      all.can_ignore |= one.can_ignore;
      all.predicts_classes |= one.predicts_classes;
      all.takes_smoothing |= one.takes_smoothing;
      all.takes_soft_labels &= one.takes_soft_labels;
      all.needs_whole_batch |= one.needs_whole_batch;
      all.compares_samples |= one.compares_samples;
      all.is_of_units &= one.is_of_units;
      all.predicts_numbers |= one.predicts_numbers;
      all.takes_weights &= one.takes_weights;
    }
    return all;
  }

  std::vector<std::string> output_names() const override {
    return members_.front().loss->output_names();
  }
  at::Tensor predictions(const at::Tensor& outputs, const NamedTensors& batch) const override {
    return members_.front().loss->predictions(outputs, batch);
  }

  void check_targets(const std::function<at::Tensor()>& some_targets) const override {
    for (const Member& member : members_) member.loss->check_targets(some_targets);
  }

  // A weighted sum among the members is replaced by its members.
  std::vector<LossTerm> terms() const override {
    std::vector<LossTerm> all;
    for (const auto& [weight, loss] : members_) {
      for (const LossTerm& term : loss->terms()) {
        all.push_back({.weight = weight * term.weight, .loss = term.loss});
      }
    }
    return all;
  }

  NamedTensors tensors() const override {
    NamedTensors all;
    for (size_t i = 0; i < members_.size(); ++i) {
      for (const auto& [name, tensor] : members_[i].loss->tensors()) {
        all.push_back({fmt::format("{}.{}", name, i), tensor});
      }
    }
    return all;
  }

 private:
  std::vector<Member> members_;
};

std::string outputs_text(const Loss& loss) {
  const std::vector<std::string> names = loss.output_names();
  return names.empty() ? "no named" : join_names(names, "and");
}

}  // namespace

void visit(config::Visitor& v, WeightedSumConfig& c) {
  v.field({.name = "losses", .help = "the losses, each a name or {name: {options}}"}, c.losses);
  v.field({.name = "weights", .help = "weight of each loss; [] for equal weights", .min = 0},
          c.weights);
}

std::unique_ptr<Loss> make_weighted_sum(const WeightedSumConfig& config,
                                        const LossContext& context) {
  const auto& items = config.losses.items;
  if (items.empty()) {
    throw UsageError(
        "train.loss: weighted-sum has no losses; give them, such as losses: [cross-entropy, dice]");
  }
  if (!config.weights.empty() && config.weights.size() != items.size()) {
    throw UsageError(
        fmt::format("train.loss: weighted-sum of {} losses has {} weights; give one "
                    "for each loss",
                    items.size(), config.weights.size()));
  }
  // The registry of the members, which includes plug-ins.
  const auto& registry = dynamic_cast<const LossRegistry&>(config.losses.catalog());
  std::vector<WeightedSum::Member> members;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].name() == "model") {
      throw UsageError("train.loss: the loss of a model cannot be part of a weighted-sum");
    }
    members.push_back({.weight = config.weights.empty() ? 1 : config.weights[i],
                       .loss = registry.build(items[i], context)});
    if (members[i].loss->output_names() != members[0].loss->output_names()) {
      throw UsageError(
          fmt::format("train.loss: weighted-sum of {} and {}: a target has {} outputs for one, and "
                      "{} for the other; combine losses with the same outputs",
                      items[0].name(), items[i].name(), outputs_text(*members[0].loss),
                      outputs_text(*members[i].loss)));
    }
  }
  return std::make_unique<WeightedSum>(std::move(members));
}

}  // namespace gallop::train

#include "gallop/app/varied_values.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "gallop/app/option_of.h"
#include "gallop/base/error.h"

namespace gallop::app {

namespace {

using train::Value;

struct Varying {
  Value value;
  schedule::VariationConfig VaryConfig::*config;
};
constexpr std::array<Varying, 5> kVarying = {
    {{Value::kLabelSmoothing, &VaryConfig::label_smoothing},
     {Value::kMomentum, &VaryConfig::momentum},
     {Value::kBeta2, &VaryConfig::beta2},
     {Value::kWeightDecay, &VaryConfig::weight_decay},
     {Value::kDropout, &VaryConfig::dropout}}};

// The recipe's; nothing where its optimizer or model has no such option.
std::optional<double> base_of(Value value, const Recipe& recipe) {
  switch (value) {
    case Value::kLabelSmoothing: {
      const auto of_loss = option_of(recipe.loss, "label_smoothing");
      return of_loss && *of_loss > 0 ? of_loss : recipe.train.label_smoothing;
    }
    case Value::kMomentum:
      if (const auto momentum = option_of(recipe.optimizer, "momentum")) return momentum;
      return option_of(recipe.optimizer, "beta1");
    case Value::kBeta2: return option_of(recipe.optimizer, "beta2");
    case Value::kWeightDecay: return option_of(recipe.optimizer, "weight_decay");
    case Value::kDropout: return option_of(recipe.model, "dropout");
  }
  return {};
}

[[noreturn]] void throw_without(Value value, const Recipe& recipe, bool is_schedules) {
  if (is_schedules) {
    throw UsageError(
        fmt::format("the schedule has base_momentum and max_momentum, but optimizer '{}' has no "
                    "momentum that can change from step to step; leave them out, or take another "
                    "optimizer",
                    recipe.optimizer.name()));
  }
  if (value == Value::kLabelSmoothing) {
    throw UsageError(fmt::format(
        "schedules.label_smoothing is an option of the loss cross-entropy, but train.loss "
        "is {}; leave it out, or take train.loss=cross-entropy",
        recipe.loss.name()));
  }
  const bool is_models = value == Value::kDropout;
  throw UsageError(fmt::format("schedules.{0}: {1} '{2}' has no {0}{3}", train::name_of(value),
                               is_models ? "model" : "optimizer",
                               is_models ? recipe.model.name() : recipe.optimizer.name(),
                               is_models ? "" : " that can change from step to step"));
}

double base_or_throw(Value value, const Recipe& recipe, bool is_schedules) {
  const auto base = base_of(value, recipe);
  if (!base) throw_without(value, recipe, is_schedules);
  // The model is made without.
  if (value == Value::kDropout && *base == 0) {
    throw UsageError(
        "schedules.dropout: model.dropout is 0; give the model the dropout that it is to have "
        "where the "
        "factor is 1");
  }
  return *base;
}

}  // namespace

VariedValues::VariedValues(const Recipe& recipe, const schedule::RunLength& length,
                           const schedule::Schedule& schedule)
    : schedule_(&schedule) {
  const bool has_momentum = schedule::has_momentum(schedule);
  for (const auto& [value, config] : kVarying) {
    const schedule::VariationConfig& vary = recipe.vary.*config;
    const bool is_schedules = value == Value::kMomentum && has_momentum;
    if (!vary.varies() && !is_schedules) continue;
    if (vary.varies() && is_schedules) {
      throw UsageError(
          "the schedule has base_momentum and max_momentum, and schedules.momentum gives the "
          "momentum a "
          "schedule of its own; leave one of them out");
    }
    One one{.value = value,
            .variation = nullptr,
            .base = base_or_throw(value, recipe, is_schedules),
            .name = {}};
    if (!is_schedules) {
      one.name = vary.schedule.name();
      one.variation =
          std::make_unique<schedule::Variation>(train::name_of(value), vary, one.base, length);
    }
    all_.push_back(std::move(one));
  }
}

double VariedValues::at(const One& one, double progress) const {
  if (one.variation) return one.variation->at(progress);
  return schedule_->momentum(progress).value_or(one.base);
}

std::vector<train::VariedValue> VariedValues::for_training() const {
  std::vector<train::VariedValue> list;
  for (const One& one : all_) {
    list.push_back({.value = one.value,
                    .at = [this, &one](double progress) { return at(one, progress); },
                    .schedule = one.variation ? &one.variation->schedule() : nullptr});
  }
  return list;
}

void VariedValues::check(const Recipe& recipe, const optim::Optimizer& optimizer,
                         const train::Loss& loss) const {
  const auto can_vary = [&](Value value) {
    switch (value) {
      case Value::kMomentum: return optimizer.can_vary(optim::Varying::kMomentum);
      case Value::kBeta2: return optimizer.can_vary(optim::Varying::kBeta2);
      case Value::kWeightDecay: return optimizer.can_vary(optim::Varying::kWeightDecay);
      case Value::kLabelSmoothing: return loss.traits().takes_smoothing;
      case Value::kDropout: return true;
    }
    return true;
  };
  for (const One& one : all_) {
    if (!can_vary(one.value)) throw_without(one.value, recipe, one.variation == nullptr);
  }
}

}  // namespace gallop::app

#include "gallop/app/parameter_schedules.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "gallop/app/option_of.h"
#include "gallop/base/error.h"

namespace gallop::app {

namespace {

using train::ScheduledParameter;

struct ScheduledOption {
  ScheduledParameter value;
  schedule::ScheduledValueConfig SchedulesConfig::*config;
};
constexpr std::array<ScheduledOption, 5> kScheduledOptions = {
    {{ScheduledParameter::kLabelSmoothing, &SchedulesConfig::label_smoothing},
     {ScheduledParameter::kMomentum, &SchedulesConfig::momentum},
     {ScheduledParameter::kBeta2, &SchedulesConfig::beta2},
     {ScheduledParameter::kWeightDecay, &SchedulesConfig::weight_decay},
     {ScheduledParameter::kDropout, &SchedulesConfig::dropout}}};

// The recipe's value; nothing if its optimizer or model has no such option.
std::optional<double> base_of(ScheduledParameter value, const Recipe& recipe) {
  switch (value) {
    case ScheduledParameter::kLabelSmoothing: {
      const auto of_loss = option_of(recipe.loss, "label_smoothing");
      return of_loss && *of_loss > 0 ? of_loss : recipe.train.label_smoothing;
    }
    case ScheduledParameter::kMomentum:
      if (const auto momentum = option_of(recipe.optimizer, "momentum")) return momentum;
      return option_of(recipe.optimizer, "beta1");
    case ScheduledParameter::kBeta2: return option_of(recipe.optimizer, "beta2");
    case ScheduledParameter::kWeightDecay: return option_of(recipe.optimizer, "weight_decay");
    case ScheduledParameter::kDropout: return option_of(recipe.model, "dropout");
  }
  return {};
}

[[noreturn]] void throw_without(ScheduledParameter value, const Recipe& recipe, bool is_schedules) {
  if (is_schedules) {
    throw UsageError(
        fmt::format("the schedule sets base_momentum and max_momentum, but optimizer '{}' has no "
                    "momentum that can be scheduled; remove them, or use another "
                    "optimizer",
                    recipe.optimizer.name()));
  }
  if (value == ScheduledParameter::kLabelSmoothing) {
    throw UsageError(fmt::format(
        "schedules.label_smoothing is an option of the loss cross-entropy, but train.loss "
        "is {}; remove it, or use train.loss=cross-entropy",
        recipe.loss.name()));
  }
  const bool is_models = value == ScheduledParameter::kDropout;
  throw UsageError(fmt::format("schedules.{0}: {1} '{2}' has no {0}{3}", train::name_of(value),
                               is_models ? "model" : "optimizer",
                               is_models ? recipe.model.name() : recipe.optimizer.name(),
                               is_models ? "" : " that can be scheduled"));
}

double base_or_throw(ScheduledParameter value, const Recipe& recipe, bool is_schedules) {
  const auto base = base_of(value, recipe);
  if (!base) throw_without(value, recipe, is_schedules);
  // The model would be built without dropout.
  if (value == ScheduledParameter::kDropout && *base == 0) {
    throw UsageError(
        "schedules.dropout: model.dropout is 0; set it to the dropout probability at factor 1");
  }
  return *base;
}

}  // namespace

ParameterSchedules::ParameterSchedules(const Recipe& recipe, const schedule::RunLength& length,
                                       const schedule::Schedule& schedule)
    : schedule_(&schedule) {
  const bool has_momentum = schedule::has_momentum(schedule);
  for (const auto& [value, config] : kScheduledOptions) {
    const schedule::ScheduledValueConfig& vary = recipe.schedules.*config;
    const bool is_schedules = value == ScheduledParameter::kMomentum && has_momentum;
    if (!vary.is_scheduled() && !is_schedules) continue;
    if (vary.is_scheduled() && is_schedules) {
      throw UsageError(
          "the schedule sets base_momentum and max_momentum, and schedules.momentum gives the "
          "momentum a "
          "schedule of its own; remove one of them");
    }
    One one{.value = value,
            .scheduled_value = nullptr,
            .base = base_or_throw(value, recipe, is_schedules),
            .name = {}};
    if (!is_schedules) {
      one.name = vary.schedule.name();
      one.scheduled_value =
          std::make_unique<schedule::ScheduledValue>(train::name_of(value), vary, one.base, length);
    }
    all_.push_back(std::move(one));
  }
}

double ParameterSchedules::at(const One& one, double progress) const {
  if (one.scheduled_value) return one.scheduled_value->at(progress);
  return schedule_->momentum(progress).value_or(one.base);
}

std::vector<train::ParameterSchedule> ParameterSchedules::for_training() const {
  std::vector<train::ParameterSchedule> list;
  for (const One& one : all_) {
    list.push_back({.value = one.value,
                    .at = [this, &one](double progress) { return at(one, progress); },
                    .schedule = one.scheduled_value ? &one.scheduled_value->schedule() : nullptr});
  }
  return list;
}

void ParameterSchedules::check(const Recipe& recipe, const optim::Optimizer& optimizer,
                               const train::Loss& loss) const {
  const auto can_schedule = [&](ScheduledParameter value) {
    switch (value) {
      case ScheduledParameter::kMomentum:
        return optimizer.can_schedule(optim::ScheduledOption::kMomentum);
      case ScheduledParameter::kBeta2:
        return optimizer.can_schedule(optim::ScheduledOption::kBeta2);
      case ScheduledParameter::kWeightDecay:
        return optimizer.can_schedule(optim::ScheduledOption::kWeightDecay);
      case ScheduledParameter::kLabelSmoothing: return loss.traits().takes_smoothing;
      case ScheduledParameter::kDropout: return true;
    }
    return true;
  };
  for (const One& one : all_) {
    if (!can_schedule(one.value)) throw_without(one.value, recipe, one.scheduled_value == nullptr);
  }
}

}  // namespace gallop::app

#include "gallop/train/metrics/metric_set.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/metrics/loss_metrics.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

using Target = MetricTask::Target;

bool is_in_every_evaluation(const Metric& metric) {
  const std::string name = metric.name();
  return metric.state_key() == kTallyKey &&
         std::find(std::begin(kEvaluatedNames), std::end(kEvaluatedNames), name) !=
             std::end(kEvaluatedNames);
}

// Builds a metric for targets whose classes are not known.
std::unique_ptr<Metric> built_for(const MetricRegistry& registry,
                                  const config::Component& component, Target target) {
  return registry.build(component, {.target = target, .classes = 2, .tokens_are_characters = true});
}

// Builds a metric for the first kind of targets that it supports.
std::unique_ptr<Metric> built_for_some_task(const MetricRegistry& registry,
                                            const config::Component& component) {
  for (const Target target : {Target::kClasses, Target::kTokens, Target::kBinary, Target::kLabels,
                              Target::kNumbers, Target::kPairs, Target::kSequences}) {
    try {
      return built_for(registry, component, target);
    } catch (const UsageError&) {
      continue;  // Not supported.
    }
  }
  throw InternalError(fmt::format("metric '{}' is for no task", component.name()));
}

ReportedMetric reported_metric(const Metric& metric) {
  ReportedMetric reported{metric.name(), metric.higher_is_better(), metric.is_single()};
  if (reported.is_single) return reported;
  const std::string of_class = metric.values(*metric.make_state()).front().name;
  reported.name = of_class.substr(0, of_class.find('/') + 1);
  return reported;
}

}  // namespace

std::vector<ReportedMetric> reported_metrics(const MetricRegistry& registry,
                                             const MetricChoice& choice,
                                             std::optional<MetricTask::Target> target) {
  std::vector<ReportedMetric> all = {{"loss", /*higher_is_better=*/false}};
  if (!target || MetricTask::are_classes(*target)) all.insert(all.end(), {{"accuracy"}, {"top5"}});
  const auto add = [&](const config::Component& one) {
    ReportedMetric metric = reported_metric(target ? *built_for(registry, one, *target)
                                                   : *built_for_some_task(registry, one));
    const auto is_same = [&](const auto& other) { return other.name == metric.name; };
    if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(std::move(metric));
  };
  if (target || choice.deciding.name() != "auto") add(choice.deciding);
  for (const config::Component& one : choice.further.items) {
    if (target || one.name() != "auto") add(one);
  }
  return all;
}

std::string deciding_metric(const MetricRegistry& registry, const MetricChoice& choice,
                            MetricTask::Target target) {
  return built_for(registry, choice.deciding, target)->name();
}

MetricSet::MetricSet(const MetricRegistry& registry, const MetricChoice& choice,
                     const MetricTask& task)
    : task_(task), deciding_(registry.build(choice.deciding, task)) {
  if (!deciding_->is_single()) {
    throw UsageError(fmt::format(
        "train.metric: '{}' with average: per-class is a number for each class, and none of them "
        "decides which evaluation is the best; use another average, and put it in train.metrics",
        choice.deciding.name()));
  }
  const auto report = [this](const std::shared_ptr<const Metric>& metric) {
    const auto is_same = [&](const auto& other) {
      return other->name() == metric->name() && other->is_single() == metric->is_single();
    };
    if (is_in_every_evaluation(*metric)) return;
    if (std::none_of(reported_.begin(), reported_.end(), is_same)) reported_.push_back(metric);
  };
  report(deciding_);
  for (const config::Component& one : choice.further.items) report(registry.build(one, task));
}

std::vector<std::string> MetricSet::single_names() const {
  std::vector<std::string> names = {"loss"};
  if (task_.has_classes()) names.assign(std::begin(kEvaluatedNames), std::end(kEvaluatedNames));
  for (const auto& metric : reported_) {
    const std::string name = metric->name();
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (metric->is_single() && is_new) names.push_back(name);
  }
  return names;
}

MetricSums::MetricSums(Metrics reported, Metrics drawn)
    : reported_(std::move(reported)), drawn_(std::move(drawn)) {
  add_states(reported_);
  add_states(drawn_);
}

void MetricSums::add_states(const Metrics& metrics) {
  for (const auto& metric : metrics) {
    const std::string key = metric->state_key();
    if (key == kTallyKey || state_of(*metric) != nullptr) continue;
    states_.push_back({key, metric, metric->make_state()});
  }
}

// Null for metrics of a tally.
const MetricState* MetricSums::state_of(const Metric& metric) const {
  const std::string key = metric.state_key();
  const auto found = std::find_if(states_.begin(), states_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  return found == states_.end() ? nullptr : found->state.get();
}

void MetricSums::add(const Predictions& batch) {
  for (const Entry& entry : states_) entry.state->add(batch);
}

void MetricSums::merge_all(parallel::Collectives& collectives) {
  for (Entry& entry : states_) {
    const auto all = parallel::gather_bytes(collectives, entry.state->to_bytes());
    entry.state = entry.metric->make_state();
    for (const std::string& bytes : all) {
      const auto one = entry.metric->make_state();
      one->from_bytes(bytes);
      entry.state->merge(*one);
    }
  }
}

std::vector<MetricValue> MetricSums::values(const Tally& tally) const {
  const TallyState of_tally(tally);
  std::vector<MetricValue> all;
  for (const auto& metric : reported_) {
    const MetricState* const own = state_of(*metric);
    const MetricState& state = own == nullptr ? of_tally : *own;
    for (MetricValue& value : metric->values(state)) all.push_back(std::move(value));
  }
  return all;
}

std::vector<FigureData> MetricSums::figures() const {
  std::vector<FigureData> all;
  for (const auto& metric : drawn_) {
    const MetricState* const state = state_of(*metric);
    if (state == nullptr) continue;
    for (FigureData& figure : metric->figures(*state)) {
      const auto is_same = [&](const FigureData& other) { return other.name == figure.name; };
      if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(std::move(figure));
    }
  }
  return all;
}

}  // namespace gallop::train

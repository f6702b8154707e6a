#include "gallop/optimize/search_state.h"

#include <utility>

namespace gallop::optimize {

namespace {

// What a training takes besides its steps: start-up, compilation, evaluations.
constexpr double kOverhead = 1.2;

}  // namespace

std::vector<std::string> SearchState::options(std::optional<size_t> without) const {
  std::vector<std::string> all = config.given;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i != without) all = with(std::move(all), kept[i].change.options);
  }
  return all;
}

double SearchState::seconds_of_training(double epochs) const {
  return kOverhead * epochs * static_cast<double>(settings.samples) / samples_per_second;
}

std::vector<std::string> SearchState::with_length(std::vector<std::string> all,
                                                  double epochs) const {
  return with(std::move(all), length_change(report.plain, epochs).options);
}

void SearchState::add(Trial trial) {
  report.trials.push_back(std::move(trial));
  report.options = options();
  report.seconds = experiments.seconds();
  progress(report);
}

void SearchState::keep(const Change& change) {
  std::erase_if(kept, [&](const Kept& one) {
    if (one.change.subject != change.subject) return false;
    report.trials[one.trial].reason = "then replaced by " + change.name;
    return true;
  });
  kept.push_back({change, report.trials.size()});
}

Comparison SearchState::compare(const std::vector<std::string>& base,
                                const std::vector<std::string>& changed) {
  using Resizing = ProgressiveResizing;
  Comparison found = experiments.compare(Resizing::without(base), Resizing::without(changed));
  const auto factor = [&](const std::vector<std::string>& options) {
    return Resizing::is_in(options) ? resizing_speedup : 1;
  };
  scale(found.base, factor(base));
  scale(found.changed, factor(changed));
  const double ratio = factor(changed) / factor(base);
  scale(found.speedup, ratio);
  if (found.energy_gain) scale(*found.energy_gain, ratio);
  return found;
}

void scale(Speed& speed, double factor) {
  speed.samples_per_second *= factor;
  speed.joules_per_sample /= factor;
}
void scale(Estimate& estimate, double factor) {
  estimate.value *= factor;
  estimate.low *= factor;
  estimate.high *= factor;
}

}  // namespace gallop::optimize

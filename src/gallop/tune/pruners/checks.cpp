#include "gallop/tune/pruners/checks.h"

#include <algorithm>
#include <cmath>

namespace gallop::tune {

void visit(config::Visitor& visitor, CheckTimes& times) {
  visitor.field({.name = "warmup_steps",
                 .help = "report before which no trial is pruned: the number of the evaluation, or "
                         "the step that a command prints",
                 .min = 0},
                times.warmup_steps);
  visitor.field(
      {.name = "interval_steps",
       .help = "evaluations, or steps that a command prints, between pruning checks after "
               "the warm-up",
       .min = 1},
      times.interval_steps);
}

bool is_due(const CheckTimes& times, const Trial& trial) {
  const auto& reports = trial.reports;
  const int64_t since = reports.back().step - times.warmup_steps;
  if (since < 0) return false;
  const int64_t due = times.warmup_steps + since / times.interval_steps * times.interval_steps;
  return reports.size() == 1 || reports[reports.size() - 2].step < due;
}

double SmallestLosses::of(const Trial& trial, size_t count) {
  Known& known = known_[trial.number];
  if (known.rewinds != trial.rewinds || known.count > count) known = {.rewinds = trial.rewinds};
  for (; known.count < count; ++known.count) {
    known.loss = std::fmin(known.loss, trial.reports[known.count].loss);
  }
  return known.loss;
}

double percentile(const std::vector<double>& sorted, double percent) {
  const double place = percent / 100 * static_cast<double>(sorted.size() - 1);
  const double low = sorted[static_cast<size_t>(place)];
  const double high = sorted[std::min(static_cast<size_t>(place) + 1, sorted.size() - 1)];
  const double share = place - std::floor(place);
  if (low == high || share == 0) return low;
  return share < 0.5 ? low + (high - low) * share : high - (high - low) * (1 - share);
}

}  // namespace gallop::tune

#include "gallop/tune/lineage.h"

namespace gallop::tune {

namespace {

int64_t end_of(const Trial& trial) {
  return trial.reports.empty() ? trial.last_step : trial.reports.back().step;
}

}  // namespace

std::vector<Stretch> lineage(const Study& study, int64_t trial) {
  std::vector<const Trial*> chain;
  for (; trial >= 0; trial = chain.back()->parent) {
    chain.push_back(&study.trials()[static_cast<size_t>(trial)]);
  }
  std::vector<Stretch> stretches;
  for (auto one = chain.rbegin(); one != chain.rend(); ++one) {
    const int64_t first = stretches.empty() ? 0 : stretches.back().last_step;
    if (stretches.empty() || !is_same_point(stretches.back().point, (*one)->point)) {
      stretches.push_back({.first_step = first, .point = (*one)->point});
    }
    stretches.back().last_step = end_of(**one);
    stretches.back().trials.push_back((*one)->number);
  }
  return stretches;
}

}  // namespace gallop::tune

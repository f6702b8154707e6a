#include "gallop/tune/lineage.h"

namespace gallop::tune {

namespace {

int64_t end_of(const Trial& trial) {
  return trial.reports.empty() ? trial.last_step : trial.reports.back().step;
}

}  // namespace

std::vector<Segment> lineage(const Study& study, int64_t trial) {
  std::vector<const Trial*> chain;
  for (; trial >= 0; trial = chain.back()->parent) {
    chain.push_back(&study.trials()[static_cast<size_t>(trial)]);
  }
  std::vector<Segment> segments;
  for (auto one = chain.rbegin(); one != chain.rend(); ++one) {
    const int64_t first = segments.empty() ? 0 : segments.back().last_step;
    if (segments.empty() || !is_same_point(segments.back().point, (*one)->point)) {
      segments.push_back({.first_step = first, .point = (*one)->point});
    }
    segments.back().last_step = end_of(**one);
    segments.back().trials.push_back((*one)->number);
  }
  return segments;
}

}  // namespace gallop::tune

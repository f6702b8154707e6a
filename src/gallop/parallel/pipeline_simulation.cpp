#include "gallop/parallel/pipeline_simulation.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <tuple>

namespace gallop::parallel {

namespace {

using enum PipelinePass;

double cost_of(const PipelineCosts& costs, const PipelineAction& action) {
  const auto stage = static_cast<size_t>(action.stage);
  switch (action.pass) {
    case kForward: return costs.forward[stage];
    case kBackward: return costs.input_gradient[stage] + costs.weight_gradient[stage];
    case kInputGradient: return costs.input_gradient[stage];
    case kWeightGradient: return costs.weight_gradient[stage];
  }
  return 0;
}

}  // namespace

PipelineCosts PipelineCosts::of_equal_stages(const PipelineSchedule& schedule, double forward,
                                             double input_gradient, double weight_gradient,
                                             double hop) {
  const auto stages = static_cast<size_t>(schedule.stages());
  const double share = 1.0 / schedule.stages_per_rank;
  return {.forward = std::vector<double>(stages, share * forward),
          .input_gradient = std::vector<double>(stages, share * input_gradient),
          .weight_gradient = std::vector<double>(stages, share * weight_gradient),
          .hop = hop};
}

double PipelineTimeline::busy(int rank) const {
  double seconds = 0;
  double end = 0;  // End of the span before; the spans of a pair are equal.
  for (const Span& span : ranks[static_cast<size_t>(rank)]) {
    if (span.end > end) seconds += span.end - span.begin;
    end = span.end;
  }
  return seconds;
}

double PipelineTimeline::bubble() const {
  if (makespan == 0) return 0;
  double seconds = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) seconds += busy(static_cast<int>(rank));
  return 1 - seconds / (makespan * static_cast<double>(ranks.size()));
}

PipelineTimeline simulate(const PipelineSchedule& schedule, const PipelineCosts& costs) {
  PipelineTimeline timeline;
  timeline.ranks.resize(schedule.actions.size());
  std::map<std::tuple<PipelinePass, int, int>, double> ends;
  schedule.visit([&](int rank, std::span<const PipelineAction> unit) {
    auto& spans = timeline.ranks[static_cast<size_t>(rank)];
    double begin = spans.empty() ? 0 : spans.back().end, cost = 0;
    for (const PipelineAction& action : unit) {
      for (const auto& needed : schedule.needs_of(action)) {
        const double hop = schedule.rank_of(needed.stage) == rank ? 0 : costs.hop;
        begin = std::max(begin, hop + ends.at({needed.pass, needed.stage, needed.micro_batch}));
      }
      cost += cost_of(costs, action);
    }
    const double end = begin + cost;
    for (const PipelineAction& action : unit) {
      spans.push_back({action, begin, end});
      const auto pass = action.pass == kBackward ? kInputGradient : action.pass;
      ends[{pass, action.stage, action.micro_batch}] = end;
    }
    timeline.makespan = std::max(timeline.makespan, end);
  });
  return timeline;
}

std::vector<double> held_micro_batches(const PipelineSchedule& schedule) {
  std::vector<double> result;
  for (const auto& list : schedule.actions) {
    int held = 0, most = 0;
    for (const PipelineAction& action : list) {
      if (action.pass == kForward) most = std::max(most, ++held);
      if (action.pass == kBackward || action.pass == kWeightGradient) --held;
    }
    result.push_back(static_cast<double>(most) / schedule.stages_per_rank);
  }
  return result;
}

}  // namespace gallop::parallel

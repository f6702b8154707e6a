#include "gallop/parallel/pipeline_simulation.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::parallel {

namespace {

using enum PipelinePass;

class Simulation {
 public:
  Simulation(const PipelineSchedule& schedule, const PipelineCosts& costs)
      : schedule_(schedule), costs_(costs), next_(schedule.actions.size()) {
    timeline_.ranks.resize(schedule.actions.size());
  }

  PipelineTimeline run() {
    while (advance()) {
    }
    for (size_t rank = 0; rank < next_.size(); ++rank) {
      if (next_[rank] < schedule_.actions[rank].size()) {
        throw InternalError(fmt::format("pipeline schedule {}: rank {} waits for ever at {}",
                                        schedule_.name, rank,
                                        text_of(schedule_.actions[rank][next_[rank]])));
      }
    }
    return std::move(timeline_);
  }

 private:
  // Lets each rank do what it can; false if none could do anything.
  bool advance() {
    bool has_advanced = false;
    for (size_t rank = 0; rank < next_.size(); ++rank) {
      while (next_[rank] < schedule_.actions[rank].size() && compute(rank)) has_advanced = true;
    }
    return has_advanced;
  }

  // The next action of a rank, or the next pair, if what it needs is known.
  bool compute(size_t rank) {
    const auto& actions = schedule_.actions[rank];
    const size_t count = actions[next_[rank]].is_paired ? 2 : 1;
    auto& spans = timeline_.ranks[rank];
    double begin = spans.empty() ? 0 : spans.back().end;
    double cost = 0;
    for (size_t i = next_[rank]; i < next_[rank] + count; ++i) {
      const auto ready = ready_at(actions[i]);
      if (!ready) return false;
      begin = std::max(begin, *ready);
      cost += cost_of(actions[i]);
    }
    for (size_t i = next_[rank]; i < next_[rank] + count; ++i) {
      const PipelineAction& action = actions[i];
      spans.push_back({action, begin, begin + cost});
      ends_[{action.pass, action.stage, action.micro_batch}] = begin + cost;
      if (action.pass == kBackward) {
        ends_[{kInputGradient, action.stage, action.micro_batch}] = begin + cost;
      }
    }
    timeline_.makespan = std::max(timeline_.makespan, begin + cost);
    next_[rank] += count;
    return true;
  }

  // When the results that an action needs are there; nothing if one is not computed yet.
  std::optional<double> ready_at(const PipelineAction& action) const {
    double time = 0;
    for (const auto& [pass, stage] : needs_of(action)) {
      const auto found = ends_.find({pass, stage, action.micro_batch});
      if (found == ends_.end()) return std::nullopt;
      const bool is_local = schedule_.rank_of(stage) == schedule_.rank_of(action.stage);
      time = std::max(time, found->second + (is_local ? 0 : costs_.hop));
    }
    return time;
  }

  std::vector<std::pair<PipelinePass, int>> needs_of(const PipelineAction& action) const {
    std::vector<std::pair<PipelinePass, int>> needs;
    const int stage = action.stage;
    switch (action.pass) {
      case kForward:
        if (stage > 0) needs.emplace_back(kForward, stage - 1);
        break;
      case kBackward:
      case kInputGradient:
        needs.emplace_back(kForward, stage);
        if (stage + 1 < schedule_.stages()) needs.emplace_back(kInputGradient, stage + 1);
        break;
      case kWeightGradient: needs.emplace_back(kInputGradient, stage); break;
    }
    return needs;
  }

  double cost_of(const PipelineAction& action) const {
    const auto stage = static_cast<size_t>(action.stage);
    switch (action.pass) {
      case kForward: return costs_.forward[stage];
      case kBackward: return costs_.input_gradient[stage] + costs_.weight_gradient[stage];
      case kInputGradient: return costs_.input_gradient[stage];
      case kWeightGradient: return costs_.weight_gradient[stage];
    }
    return 0;
  }

  struct Key {
    PipelinePass pass;
    int stage, micro_batch;
    auto operator<=>(const Key&) const = default;
  };

  const PipelineSchedule& schedule_;
  const PipelineCosts& costs_;
  std::vector<size_t> next_;  // Of each rank.
  std::map<Key, double> ends_;
  PipelineTimeline timeline_;
};

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
  double end = 0;  // Of the span before; the spans of a pair are equal.
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
  return Simulation(schedule, costs).run();
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

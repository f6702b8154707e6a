#include "gallop/parallel/pipeline_schedule.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"

namespace gallop::parallel {

namespace {

// The actions of one rank, with each pass of a stage taking the next micro-batch.
class Actions {
 public:
  void add(PipelinePass pass, int stage) {
    using enum PipelinePass;
    if (pass == kBackward) {
      // Counts as the two passes that it consists of.
      const int micro_batch = next_[{kInputGradient, stage}]++;
      ++next_[{kWeightGradient, stage}];
      all_.push_back({pass, stage, micro_batch});
      return;
    }
    if (pass == kInputGradient) pending_.push_back(stage);
    all_.push_back({pass, stage, next_[{pass, stage}]++});
  }

  // A forward and a backward pass at the same time, which hide each other's communication.
  void add_pair(int forward, int backward) {
    add(PipelinePass::kForward, forward);
    all_.back().is_paired = true;
    add(PipelinePass::kBackward, backward);
  }

  // The weight gradients of the oldest input gradients without them, if there are any.
  void add_oldest_weight_gradient() {
    if (oldest_ < pending_.size()) add(PipelinePass::kWeightGradient, pending_[oldest_++]);
  }

  void add_all_weight_gradients() {
    while (oldest_ < pending_.size()) add_oldest_weight_gradient();
  }

  std::vector<PipelineAction> take() { return std::move(all_); }

 private:
  std::vector<PipelineAction> all_;
  std::map<std::pair<PipelinePass, int>, int> next_;
  std::vector<int> pending_;  // Stages in the order of their input gradients.
  size_t oldest_ = 0;
};

// What distinguishes the schedules in which a rank does one forward pass, then one backward pass.
struct OneByOne {
  int warm_up = 0;  // Forward passes before the first backward pass.
  int group = 1;    // Micro-batches after which a rank proceeds to its next stage.
  // Input gradients ahead of weight gradients; -1: backward passes are not split.
  int delay = -1;
};

std::vector<PipelineAction> one_by_one(const PipelineSchedule& schedule, int rank,
                                       const OneByOne& order) {
  const int chunks = schedule.stages_per_rank;
  const int items = schedule.micro_batches * chunks;
  const int warm_up = std::min(order.warm_up, items);
  const auto stage_at = [&](int item, bool forward) {
    const int chunk = item / order.group % chunks;
    return (forward ? chunk : chunks - 1 - chunk) * schedule.ranks + rank;
  };
  Actions actions;
  for (int item = 0; item < items + warm_up; ++item) {
    if (item < items) actions.add(PipelinePass::kForward, stage_at(item, true));
    const int backward = item - warm_up;
    if (backward < 0) continue;
    const bool split = order.delay >= 0;
    actions.add(split ? PipelinePass::kInputGradient : PipelinePass::kBackward,
                stage_at(backward, false));
    if (split && backward >= order.delay) actions.add_oldest_weight_gradient();
  }
  actions.add_all_weight_gradients();
  return actions.take();
}

template <typename F>
PipelineSchedule with_actions(PipelineSchedule schedule, const F& actions_of) {
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    schedule.actions.push_back(actions_of(schedule, rank));
  }
  return schedule;
}

PipelineSchedule make_gpipe(int ranks, int stages_per_rank, int micro_batches) {
  return with_actions({"gpipe", ranks, stages_per_rank, micro_batches},
                      [](const PipelineSchedule& schedule, int rank) {
                        return one_by_one(schedule, rank, {.warm_up = schedule.micro_batches});
                      });
}

PipelineSchedule make_1f1b(int ranks, int stages_per_rank, int micro_batches) {
  return with_actions({"1f1b", ranks, stages_per_rank, micro_batches},
                      [](const PipelineSchedule& schedule, int rank) {
                        return one_by_one(schedule, rank, {.warm_up = schedule.ranks - 1 - rank});
                      });
}

// Micro-batches come in rounds of equal size, of about as many as there are ranks.
int round_of(int ranks, int micro_batches) {
  const auto rounds_of = [&](int count) { return std::max(1, count / ranks); };
  const auto is_allowed = [&](int count) { return count % rounds_of(count) == 0; };
  if (!is_allowed(micro_batches)) {
    int before = micro_batches, after = micro_batches;
    while (!is_allowed(before)) --before;
    while (!is_allowed(after)) ++after;
    throw UsageError(fmt::format(
        "{} micro-batches cannot be divided into {} equal rounds of about {} (the number of "
        "ranks); the nearest numbers are {} and {}",
        micro_batches, rounds_of(micro_batches), ranks, before, after));
  }
  return micro_batches / rounds_of(micro_batches);
}

PipelineSchedule make_interleaved(int ranks, int stages_per_rank, int micro_batches) {
  const int round = round_of(ranks, micro_batches);
  return with_actions({"interleaved-1f1b", ranks, stages_per_rank, micro_batches},
                      [&](const PipelineSchedule& schedule, int rank) {
                        const int warm_up = (stages_per_rank - 1) * round + 2 * (ranks - 1 - rank);
                        return one_by_one(schedule, rank, {.warm_up = warm_up, .group = round});
                      });
}

PipelineSchedule make_zero_bubble(int ranks, int stages_per_rank, int micro_batches) {
  const int round = round_of(ranks, micro_batches);
  return with_actions({"zero-bubble", ranks, stages_per_rank, micro_batches},
                      [&](const PipelineSchedule& schedule, int rank) {
                        const int warm_up = (stages_per_rank - 1) * round + ranks - 1 - rank;
                        return one_by_one(schedule, rank,
                                          {.warm_up = warm_up, .group = round, .delay = rank});
                      });
}

// The rule is for at least 2 ranks - 1 micro-batches; those that are too many are removed.
std::vector<PipelineAction> zbv_actions(const PipelineSchedule& schedule, int rank) {
  using enum PipelinePass;
  const int ranks = schedule.ranks;
  const int first = rank, second = 2 * ranks - 1 - rank;
  int left = std::max(schedule.micro_batches, 2 * ranks - 1);
  int ahead = 0;  // Forward passes of the first stage ahead of those of the second.
  Actions actions;
  const auto forward_first = [&] {
    actions.add(kForward, first);
    --left;
    ++ahead;
  };
  const auto forward_second = [&] {
    actions.add(kForward, second);
    --ahead;
  };
  const auto backward = [&](int stage) {
    actions.add(kInputGradient, stage);
    actions.add(kWeightGradient, stage);
  };
  for (int i = 0; i < 2 * (ranks - rank) - 1; ++i) forward_first();
  for (int i = 0; i < rank; ++i) {
    forward_second();
    forward_first();
  }
  for (int i = 0; i < ranks - rank; ++i) {
    forward_second();
    backward(second);
  }
  while (ahead > 0 || left > 0) {
    if (left > 0) forward_first();
    backward(first);
    forward_second();
    backward(second);
  }
  for (int i = 0; i < rank; ++i) {
    actions.add(kInputGradient, first);
    actions.add(kInputGradient, second);
  }
  for (int i = 0; i < ranks - rank; ++i) backward(first);
  for (int i = 0; i < rank; ++i) actions.add(kWeightGradient, second);
  for (int i = 0; i < rank; ++i) actions.add(kWeightGradient, first);
  std::vector<PipelineAction> all = actions.take();
  std::erase_if(all, [&](const PipelineAction& action) {
    return action.micro_batch >= schedule.micro_batches;
  });
  return all;
}

PipelineSchedule make_zbv(int ranks, int stages_per_rank, int micro_batches) {
  return with_actions({"zbv", ranks, stages_per_rank, micro_batches, true}, zbv_actions);
}

// The eight parts of DeepSeek's published order.
std::vector<PipelineAction> dualpipev_actions(const PipelineSchedule& schedule, int rank) {
  using enum PipelinePass;
  const int ranks = schedule.ranks;
  const int later = ranks - rank - 1;  // Ranks after this one.
  const int first = rank, second = 2 * ranks - 1 - rank;
  Actions actions;
  for (int i = 0; i < 2 * later; ++i) actions.add(kForward, first);
  for (int i = 0; i < rank + 1; ++i) {
    actions.add(kForward, first);
    actions.add(kForward, second);
  }
  for (int i = 0; i < later; ++i) {
    actions.add(kInputGradient, second);
    actions.add_oldest_weight_gradient();
    actions.add(kForward, second);
  }
  for (int i = 0; i < schedule.micro_batches - 2 * ranks + rank + 1; ++i) {
    if (i == 0 && later == 0) {
      // A pair would begin later than its forward pass can.
      actions.add(kForward, first);
      actions.add(kBackward, second);
    } else {
      actions.add_pair(first, second);
    }
    actions.add_pair(second, first);
  }
  for (int i = 0; i < later; ++i) {
    actions.add(kBackward, second);
    actions.add_pair(second, first);
  }
  // From the middle of this part on, weight gradients wait.
  const int passes = 2 * (rank + 1);
  for (int i = 0; i < passes; ++i) {
    const bool waits = i >= (rank + 1) / 2 * 2 + (rank % 2 == 0 ? 1 : 0);
    actions.add(waits ? kInputGradient : kBackward, i % 2 == 0 ? second : first);
  }
  for (int i = 0; i < later; ++i) {
    actions.add_oldest_weight_gradient();
    actions.add(kInputGradient, first);
  }
  actions.add_all_weight_gradients();
  return actions.take();
}

PipelineSchedule make_dualpipev(int ranks, int stages_per_rank, int micro_batches) {
  if (micro_batches < 2 * ranks) {
    throw UsageError(
        fmt::format("dualpipev needs at least twice as many micro-batches as ranks: {} instead of "
                    "{}",
                    2 * ranks, micro_batches));
  }
  return with_actions({"dualpipev", ranks, stages_per_rank, micro_batches, true},
                      dualpipev_actions);
}

}  // namespace

std::string text_of(const PipelineAction& action) {
  return fmt::format("{}{}{}", action.stage, static_cast<char>(action.pass), action.micro_batch);
}

int PipelineSchedule::rank_of(int stage) const {
  const int place = stage % ranks;
  return is_v_shaped && stage >= ranks ? ranks - 1 - place : place;
}

std::vector<int> PipelineSchedule::stages_of(int rank) const {
  std::vector<int> result;
  for (int stage = 0; stage < stages(); ++stage) {
    if (rank_of(stage) == rank) result.push_back(stage);
  }
  return result;
}

bool PipelineSchedule::splits_backward() const {
  return std::ranges::any_of(actions, [](const auto& list) {
    return std::ranges::any_of(list, [](const PipelineAction& action) {
      return action.pass == PipelinePass::kWeightGradient;
    });
  });
}

std::vector<PipelineAction> PipelineSchedule::needs_of(const PipelineAction& action) const {
  using enum PipelinePass;
  std::vector<PipelineAction> needs;
  switch (action.pass) {
    case kForward:
      if (action.stage > 0) needs.push_back({kForward, action.stage - 1, action.micro_batch});
      break;
    case kBackward:
    case kInputGradient:
      needs.push_back({kForward, action.stage, action.micro_batch});
      if (action.stage + 1 < stages()) {
        needs.push_back({kInputGradient, action.stage + 1, action.micro_batch});
      }
      break;
    case kWeightGradient:
      needs.push_back({kInputGradient, action.stage, action.micro_batch});
      break;
  }
  return needs;
}

void PipelineSchedule::visit(
    const std::function<void(int, std::span<const PipelineAction>)>& visitor) const {
  using Key = std::tuple<PipelinePass, int, int>;
  const auto key_of = [](const PipelineAction& action) {
    // A whole backward pass gives what others need of its first part.
    const bool is_whole = action.pass == PipelinePass::kBackward;
    return Key(is_whole ? PipelinePass::kInputGradient : action.pass, action.stage,
               action.micro_batch);
  };
  std::set<Key> visited;
  const auto is_ready = [&](const PipelineAction& action) {
    return std::ranges::all_of(needs_of(action), [&](const PipelineAction& needed) {
      return visited.contains(key_of(needed));
    });
  };
  std::vector<size_t> next(actions.size());
  for (bool has_advanced = true; has_advanced;) {
    has_advanced = false;
    for (size_t rank = 0; rank < actions.size(); ++rank) {
      if (next[rank] == actions[rank].size()) continue;
      const auto unit =
          std::span(actions[rank]).subspan(next[rank], actions[rank][next[rank]].is_paired ? 2 : 1);
      if (!std::ranges::all_of(unit, is_ready)) continue;
      visitor(static_cast<int>(rank), unit);
      for (const PipelineAction& action : unit) visited.insert(key_of(action));
      next[rank] += unit.size();
      has_advanced = true;
    }
  }
  for (size_t rank = 0; rank < actions.size(); ++rank) {
    if (next[rank] == actions[rank].size()) continue;
    throw InternalError(fmt::format("pipeline schedule {}: rank {} waits forever at {}", name, rank,
                                    text_of(actions[rank][next[rank]])));
  }
}

const std::vector<PipelineScheduleKind>& pipeline_schedules() {
  static const std::vector<PipelineScheduleKind> kinds = {
      {"gpipe", "all forward passes, then all backward passes (Huang et al., NeurIPS 2019)", 1,
       false, make_gpipe},
      {"1f1b",
       "one forward, one backward pass: as fast as gpipe, with activations of as many "
       "micro-batches as there are ranks at most (PipeDream-Flush: Narayanan et al., "
       "ICML 2021)",
       1, false, make_1f1b},
      {"interleaved-1f1b",
       "several stages on each rank, which divide the bubble by their number "
       "(Narayanan et al., SC 2021)",
       2, true, make_interleaved},
      {"zero-bubble",
       "1f1b in which weight gradients fill the bubble (ZB-H1: Qi et al., ICLR "
       "2024)",
       1, true, make_zero_bubble},
      {"zbv",
       "two stages on each rank in the shape of a V, with hardly a bubble if all passes take "
       "the same time (ZB-V: Qi et al., ICLR 2024)",
       2, false, make_zbv},
      {"dualpipev",
       "two stages on each rank in the shape of a V, with forward and backward passes "
       "in pairs (DeepSeek, 2025)",
       2, false, make_dualpipev},
  };
  return kinds;
}

PipelineSchedule make_pipeline_schedule(std::string_view name, int ranks, int micro_batches,
                                        int stages_per_rank) {
  const auto& kinds = pipeline_schedules();
  const auto kind = std::ranges::find(kinds, name, &PipelineScheduleKind::name);
  if (kind == kinds.end()) {
    std::vector<std::string> names;
    for (const auto& one : kinds) names.emplace_back(one.name);
    throw UsageError(
        fmt::format("unknown pipeline schedule '{}'; known are {}", name, fmt::join(names, ", ")));
  }
  if (ranks < 1) throw UsageError(fmt::format("{} ranks: a pipeline has at least 1", ranks));
  if (micro_batches < 1) {
    throw UsageError(fmt::format("{} micro-batches: a pipeline needs at least 1", micro_batches));
  }
  const int stages = stages_per_rank == 0 ? kind->stages_per_rank : stages_per_rank;
  if (kind->has_any_stages ? stages < kind->stages_per_rank : stages != kind->stages_per_rank) {
    throw UsageError(fmt::format("{} has {}{} stage{} on each rank, not {}", kind->name,
                                 kind->has_any_stages ? "at least " : "", kind->stages_per_rank,
                                 kind->stages_per_rank == 1 ? "" : "s", stages));
  }
  return kind->make(ranks, stages, micro_batches);
}

}  // namespace gallop::parallel

// Verifies that the processes that share the steps of a training have the same state.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"
#include "gallop/parallel/model_averager.h"
#include "gallop/train/shared_state.h"
#include "gallop/train/trainer_impl.h"

namespace gallop::train {

namespace {

constexpr int64_t kMostTimes = 3;

std::string names_of(const std::vector<size_t>& ranks, const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  for (const size_t rank : ranks) names.push_back(fmt::format("rank {} on {}", rank, hosts[rank]));
  return join_names(names, "and");
}

}  // namespace

// A comparison precedes everything that depends on the state: saving, evaluating and stopping.
bool Trainer::Impl::comparison_is_due() const {
  if (!process_group.has_same_weights() || compared_step == progress.step) return false;
  if (comparison_trigger.is_never()) return false;
  return comparison_trigger.at(progress.step) || evaluation_is_due() || is_last() ||
         is_out_of_patience() || is_due(checkpoint_trigger, StepRequest::kSave) ||
         requested(StepRequest::kStop);
}

// Returns false if the run had to go back.
bool Trainer::Impl::compare_states() {
  report_all();
  clock.pause();
  process_group.begin(parallel::Section::kCheckpoint, progress.step);
  // What a process alone has cannot be compared.
  NamedTensors all = replicated(logical_model());
  std::vector<NamedTensors> states = {step.state()};
  // Replicas that are trained by themselves have different ones.
  const parallel::ModelAverager* const averager = process_group.averager();
  if (averager == nullptr || !averager->has_trained_locally()) {
    states.push_back(replicated(parts.optimizer.logical_state()));
  }
  for (const auto& list : states) all.insert(all.end(), list.begin(), list.end());
  const auto found = state_watch.compare(progress.step, process_group.gather(checksum_of(all)));
  comparison_trigger.done(progress.step);
  compared_step = progress.step;
  if (found.is_equal && found.wrong_before.empty()) return true;
  const auto hosts = process_group.gather(host_name());
  if (found.is_equal) {
    tell(&Observer::noted, fmt::format("step {} repeated: all ranks agree; {} had different "
                                       "weights or states before",
                                       progress.step, names_of(found.wrong_before, hosts)));
    return true;
  }
  std::vector<size_t> ranks = found.odd_ranks;
  for (size_t rank = 0; ranks.empty() && rank < hosts.size(); ++rank) ranks.push_back(rank);
  go_back(
      fmt::format("step {}: {} {}: a bit has flipped in memory, or a processor computes wrongly",
                  progress.step, names_of(ranks, hosts),
                  found.odd_ranks.empty() ? "differ in weights or states"
                                          : "has different weights or states than the rest"));
  return false;
}

// Goes back to the newest checkpoint, from which the same steps are repeated.
void Trainer::Impl::go_back(const std::string& why) {
  finish_saving();
  if (state_watch.count() >= kMostTimes) {
    throw DeviceError(
        fmt::format("{}; this happened {} times, which is too often", why, kMostTimes));
  }
  std::optional<CheckpointInfo> newest;
  const auto back_to = process_group.run_on_rank0([&]() -> std::optional<int64_t> {
    newest = parts.checkpoints.newest();
    return newest ? std::optional(newest->step) : std::nullopt;
  });
  if (!back_to) {
    throw DeviceError(fmt::format("{}; there is no checkpoint yet to go back to", why));
  }
  take(newest);
  compared_step = progress.step;
  tell(&Observer::noted, fmt::format("{}. All repeat the steps after {}", why, *back_to));
  tell(&Observer::went_back, progress.step);
}

}  // namespace gallop::train

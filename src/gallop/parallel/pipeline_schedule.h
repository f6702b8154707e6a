#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gallop::parallel {

/// What a pipeline stage computes for one micro-batch. Letters are those of PyTorch's schedules.
enum class PipelinePass : char {
  kForward = 'F',
  kBackward = 'B',        ///< Both of the following.
  kInputGradient = 'I',   ///< The gradient of the stage's input, which the stage before it needs.
  kWeightGradient = 'W',  ///< The gradients of the stage's parameters, which no stage waits for.
};

struct PipelineAction {
  PipelinePass pass = PipelinePass::kForward;
  int stage = 0;
  int micro_batch = 0;
  bool is_paired = false;  ///< Computed at the same time as the next action of the rank.

  bool operator==(const PipelineAction&) const = default;
};

/// "2F0": the forward pass of stage 2 for micro-batch 0, as in the files of
/// torch.distributed.pipelining.
std::string text_of(const PipelineAction& action);

/// The order in which each rank of a pipeline computes the passes of its stages.
struct PipelineSchedule {
  std::string name;
  int ranks = 1;
  int stages_per_rank = 1;
  int micro_batches = 1;
  /// Whether the last rank has two consecutive stages and the first one the last stage; otherwise
  /// stage s is on rank s mod ranks.
  bool is_v_shaped = false;
  std::vector<std::vector<PipelineAction>> actions{};  ///< Of each rank.

  int stages() const { return ranks * stages_per_rank; }
  int rank_of(int stage) const;
  /// In ascending order.
  std::vector<int> stages_of(int rank) const;
  /// Whether input and weight gradients are separate passes.
  bool splits_backward() const;

  /// The passes whose results an action needs. That of kInputGradient may be part of a kBackward.
  std::vector<PipelineAction> needs_of(const PipelineAction& action) const;

  /// Visits all actions, each after those that it needs: of each rank in turn the next one, or the
  /// next pair, if what it needs has been visited. Throws InternalError if ranks wait for each
  /// other.
  void visit(
      const std::function<void(int rank, std::span<const PipelineAction> actions)>& visitor) const;
};

/// A schedule that can be chosen by name.
struct PipelineScheduleKind {
  const char* name;
  const char* help;  ///< With its source.
  /// The number of stages of each rank: exactly `stages_per_rank`, or any from this number on.
  int stages_per_rank;
  bool has_any_stages;
  PipelineSchedule (*make)(int ranks, int stages_per_rank, int micro_batches);
};

/// gpipe, 1f1b, interleaved-1f1b, zero-bubble, zbv and dualpipev.
const std::vector<PipelineScheduleKind>& pipeline_schedules();

/// The schedule of this name. `stages_per_rank` 0 is the least that the schedule allows. Throws
/// UsageError for an unknown name, and for numbers that the schedule does not allow, with the rule
/// and the nearest number of micro-batches that it allows.
PipelineSchedule make_pipeline_schedule(std::string_view name, int ranks, int micro_batches,
                                        int stages_per_rank = 0);

}  // namespace gallop::parallel

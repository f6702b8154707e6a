#pragma once

#include <vector>

#include "gallop/parallel/pipeline_schedule.h"

namespace gallop::parallel {

/// What the passes of one micro-batch cost, in any unit of time.
struct PipelineCosts {
  /// Seconds of each stage; a backward pass takes the sum of its two parts.
  std::vector<double> forward, input_gradient, weight_gradient;
  double hop = 0;  ///< From the end of a pass until another rank has its result.

  /// Equal stages, from the times of a whole rank.
  static PipelineCosts of_equal_stages(const PipelineSchedule& schedule, double forward,
                                       double input_gradient, double weight_gradient,
                                       double hop = 0);
};

/// When each pass begins and ends; both passes of a pair take the sum of their times.
struct PipelineTimeline {
  struct Span {
    PipelineAction action;
    double begin = 0, end = 0;
  };
  std::vector<std::vector<Span>> ranks;
  double makespan = 0;

  /// The share of the time in which ranks wait.
  double bubble() const;
  double busy(int rank) const;
};

/// Runs the schedule with each pass as early as its rank and the results that it needs allow, and
/// transfers beside the computation. Throws InternalError if ranks wait for each other.
PipelineTimeline simulate(const PipelineSchedule& schedule, const PipelineCosts& costs);

/// The largest number of micro-batches whose activations a rank holds at once, for each rank, in
/// units of all its stages: a stage counts as 1 / stages_per_rank from its forward pass to the end
/// of its backward passes.
std::vector<double> held_micro_batches(const PipelineSchedule& schedule);

}  // namespace gallop::parallel

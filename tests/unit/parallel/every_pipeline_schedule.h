#pragma once

#include <functional>
#include <string>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/pipeline_schedule.h"

namespace gallop::parallel {

/// Calls the function for each schedule of up to so many ranks, micro-batches and stages per rank.
inline void for_each_schedule(int most_ranks, int most_micro_batches, int most_stages,
                              const std::function<void(const PipelineSchedule&)>& visit) {
  for (const auto& kind : pipeline_schedules()) {
    const int stages = kind.has_any_stages ? most_stages : kind.stages_per_rank;
    for (int ranks = 1; ranks <= most_ranks; ++ranks) {
      for (int micro_batches = 1; micro_batches <= most_micro_batches; ++micro_batches) {
        for (int v = kind.stages_per_rank; v <= stages; ++v) {
          PipelineSchedule schedule;
          try {
            schedule = make_pipeline_schedule(kind.name, ranks, micro_batches, v);
          } catch (const UsageError&) {
            continue;  // The schedule does not allow these numbers.
          }
          visit(schedule);
        }
      }
    }
  }
}

inline std::string text_of(const PipelineSchedule& schedule) {
  return fmt::format("{} of {} ranks, {} micro-batches, {} stages", schedule.name, schedule.ranks,
                     schedule.micro_batches, schedule.stages());
}

}  // namespace gallop::parallel

#pragma once

#include <cstddef>
#include <string>

#include "gallop/parallel/pipeline_simulation.h"

namespace gallop::parallel {

/// One line per rank, of at most so many columns, with time from left to right: each pass as its
/// letter and micro-batch, with its stage if a rank has several, and blanks where a rank waits.
/// Passes that are too short for that are drawn as far as they fit.
std::string timeline_text(const PipelineSchedule& schedule, const PipelineTimeline& timeline,
                          size_t columns);

/// The same as one SVG file, light or dark by the reader's preference: a row for each rank with a
/// box for each pass, colored by its kind, and lighter for later stages of the rank. `unit` is that
/// of the timeline, such as "ms"; empty: none.
std::string timeline_svg(const PipelineSchedule& schedule, const PipelineTimeline& timeline,
                         const std::string& title, const std::string& unit);

}  // namespace gallop::parallel

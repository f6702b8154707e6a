#include "gallop/parallel/process_moment.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::parallel {

std::string ProcessMoment::place() const {
  switch (section) {
    case Section::kStart: return "start";
    case Section::kStep: return fmt::format("step {}", step);
    case Section::kEvaluation: return fmt::format("evaluation after step {}", step);
    case Section::kCheckpoint: return fmt::format("checkpoint of step {}", step);
  }
  throw InternalError("collectives: a section without a name");
}

double ProcessMoment::limit_seconds() const {
  if (section == Section::kStart) return limits.start;
  return section == Section::kStep ? limits.step : limits.other;
}

double ProcessMoment::longest_limit_seconds() const {
  return section == Section::kStep ? std::max(limits.step, limits.start) : limit_seconds();
}

}  // namespace gallop::parallel

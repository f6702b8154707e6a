#pragma once

#include <memory>
#include <optional>

#include "gallop/config/component.h"
#include "gallop/tune/random.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// A trial that a sampler proposes.
struct Proposal {
  Point point;
  int64_t parent = -1;    ///< The trial from whose last checkpoint it starts; -1 for none.
  int32_t member = -1;    ///< Member of a population, which trains in several trials; -1 for none.
  int64_t last_step = 0;  ///< Last training step; 0: no limit.
};

/// Suggests the next trial.
///
/// A proposal is a function of the study and of the trial's number: all random numbers come from
/// Random(study.seed(), number), and cached state only saves work, so that a new sampler that sees
/// the same study suggests the same. A study only grows between calls.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// The proposal for trial `number`, which is the next. Nothing if it must wait for a running
  /// trial to end, or if there are no more proposals (is_exhausted()). The point is in the space
  /// and satisfies its constraints. Throws UsageError if no such point is found.
  virtual std::optional<Proposal> ask(const Study& study, int64_t number) = 0;

  /// The proposal for a trial with a given point. Throws UsageError if the trial of this number
  /// cannot have a given point.
  virtual Proposal given(Point point, int64_t /*number*/) const {
    return {.point = std::move(point)};
  }

  /// Whether there are no more proposals, such as after a complete grid.
  virtual bool is_exhausted(const Study& /*study*/) const { return false; }
};

/// Samplers by name. Factories throw UsageError if options contradict each other or the method does
/// not support the study.
using SamplerRegistry = config::Registry<Sampler, const StudySettings&>;

/// The built-in samplers.
SamplerRegistry built_in_samplers();

/// A sample of a parameter: uniform in its coordinate, or a choice drawn by the weights.
double random_value(const Parameter& parameter, Random& random);

/// A sample of the space, with rejection by the constraints. Throws UsageError after 10,000
/// rejections.
Point random_point(const Space& space, Random& random);

}  // namespace gallop::tune

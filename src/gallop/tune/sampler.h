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
  int64_t parent = -1;    ///< The trial from whose last checkpoint it begins; -1 for none.
  int32_t member = -1;    ///< Member of a population, which trains in several trials; -1 for none.
  int64_t last_step = 0;  ///< Last step that it trains; 0 for all.
};

/// Chooses the next trial.
///
/// Its proposal is a function of the study and of the trial's number: all random numbers come from
/// Random(study.seed(), number), and cached state only saves work, so that a sampler that is
/// created later and sees the same study returns the same. A study only grows between calls.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// The proposal for trial `number`, which is the next. Nothing if it must wait for a running
  /// trial to end, or if there are no more (is_exhausted()). The point is in the space and
  /// satisfies its constraints. Throws UsageError if no such point is found.
  virtual std::optional<Proposal> ask(const Study& study, int64_t number) = 0;

  /// The proposal for a trial whose point was given from outside. Throws UsageError if a trial of
  /// this number cannot be.
  virtual Proposal given(Point point, int64_t /*number*/) const {
    return {.point = std::move(point)};
  }

  /// Whether it has no more proposals, as a grid that is complete.
  virtual bool is_exhausted(const Study& /*study*/) const { return false; }
};

/// Samplers by name. They throw UsageError if options contradict each other or the method does not
/// support the study.
using SamplerRegistry = config::Registry<Sampler, const StudySettings&>;

/// The samplers that come with Gallop.
SamplerRegistry built_in_samplers();

/// A value that is uniform in its coordinate, or a choice drawn by the weights.
double random_value(const Parameter& parameter, Random& random);

/// A point whose coordinates are uniform and whose choices are drawn by their weights, with
/// rejection by the constraints. Throws UsageError after 10,000 rejections.
Point random_point(const Space& space, Random& random);

}  // namespace gallop::tune

#pragma once

#include <memory>
#include <optional>

#include "gallop/config/component.h"
#include "gallop/tune/random.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// A trial that a sampler wants.
struct Proposal {
  Point point;
  int64_t parent = -1;    ///< The trial from whose last checkpoint it begins; -1 for none.
  int32_t member = -1;    ///< Of a population, which trains in several trials; -1 for none.
  int64_t last_step = 0;  ///< Up to which it is to run; 0 for all.
};

/// Chooses what is tried next.
///
/// What it answers is a function of the study and of the trial's number: all random numbers come
/// from Random(study.seed(), number), and what it keeps between calls only spares it work, so that
/// another sampler that is made later and sees the same study answers the same. A study only grows
/// between calls.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// The trial of this number, which is the next. Nothing where no trial is wanted before one that
  /// runs has ended, or none at all (is_exhausted()). The point is in the space and allowed by its
  /// constraints. Throws UsageError where no point is found that they allow.
  virtual std::optional<Proposal> ask(const Study& study, int64_t number) = 0;

  /// How a trial is run whose point was given from outside. Throws UsageError where there can
  /// be none of this number.
  virtual Proposal given(Point point, int64_t /*number*/) const {
    return {.point = std::move(point)};
  }

  /// Whether it has no more to propose, as a grid that has been walked through.
  virtual bool is_exhausted(const Study& /*study*/) const { return false; }
};

/// Samplers by name. They throw UsageError where options contradict each other or the study cannot
/// be searched so.
using SamplerRegistry = config::Registry<Sampler, const StudySettings&>;

/// The samplers that come with Gallop.
SamplerRegistry built_in_samplers();

/// A value that is uniform in its coordinate, or a choice drawn by the weights.
double random_value(const Parameter& parameter, Random& random);

/// A point whose coordinates are uniform and whose choices are drawn by their weights; drawn again
/// until the constraints allow it. Throws UsageError after 10,000 in vain.
Point random_point(const Space& space, Random& random);

}  // namespace gallop::tune

#pragma once

#include <cstdint>

#include "gallop/config/component.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// Decides which trials are not worth going on with. Like a sampler, a function of the study.
class Pruner {
 public:
  virtual ~Pruner() = default;

  /// The bracket of the trial of this number.
  virtual int32_t bracket(const Study& /*study*/, int64_t /*number*/) const { return 0; }

  /// Whether a running trial is to end, just after its last report.
  virtual bool should_stop(const Study& study, const Trial& trial) = 0;

  /// A pruned trial that has earned to go on after all, and the step up to which, because of what
  /// others have reported since; nothing where there is none.
  struct Promotion {
    int64_t trial;
    int64_t last_step;
  };
  virtual std::optional<Promotion> promote(const Study& /*study*/) { return {}; }
  /// Up to which step a trial is to run that has just been asked for; 0 for all.
  virtual int64_t first_stop(const Study& /*study*/, int32_t /*bracket*/) const { return 0; }
};

/// Pruners by name. They throw UsageError where options contradict each other or a study has
/// several objectives.
using PrunerRegistry = config::Registry<Pruner, const StudySettings&>;

/// The pruners that come with Gallop.
PrunerRegistry built_in_pruners();

}  // namespace gallop::tune

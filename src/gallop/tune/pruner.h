#pragma once

#include <cstdint>

#include "gallop/config/component.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// Decides which trials to stop early. Like a sampler, its decisions are a function of the study.
class Pruner {
 public:
  virtual ~Pruner() = default;

  /// The bracket of this trial.
  virtual int32_t bracket(const Study& /*study*/, int64_t /*number*/) const { return 0; }

  /// Whether to stop a running trial, just after its last report.
  virtual bool should_stop(const Study& study, const Trial& trial) = 0;

  /// A pruned trial to promote because of later reports of other trials, and the step up to which
  /// it then runs (0: no limit); nothing if there is none.
  struct Promotion {
    int64_t trial;
    int64_t last_step;
  };
  virtual std::optional<Promotion> promote(const Study& /*study*/) { return {}; }
  /// The step up to which a new trial of this bracket runs; 0: no limit.
  virtual int64_t first_stop(const Study& /*study*/, int32_t /*bracket*/) const { return 0; }
};

/// Pruners by name. Factories throw UsageError if options contradict each other or the study has
/// several objectives.
using PrunerRegistry = config::Registry<Pruner, const StudySettings&>;

/// The pruners that come with Gallop.
PrunerRegistry built_in_pruners();

}  // namespace gallop::tune

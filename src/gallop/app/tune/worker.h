#pragma once

#include <string>

#include "gallop/app/tune/trial_command.h"
#include "gallop/app/tune/trial_metrics.h"
#include "gallop/base/stop.h"
#include "gallop/tune/study_client.h"
#include "gallop/tune/sweep.h"

namespace gallop::app {

/// How a study's recipe counts its reports. Reads the recipe with the options of a point of the
/// space, so that what is wrong with either is told before a trial runs: throws UsageError. A
/// command counts its own.
ReportUnit report_unit(const Registries& registries, const tune::StudySettings& settings,
                       const tune::RunSpec& spec);

/// Throws UsageError where what a study's trials run, its metrics (`reported` are those of its
/// recipe) or its sampler and pruner cannot be, before there is a study.
void check_study(const Registries& registries, const tune::StudySettings& settings,
                 const RecipeMetrics& reported);

/// Runs trials until the study needs no more, or `stop` is asked for. `name` is this worker's.
/// Throws what the broker throws.
void work(tune::StudyClient& client, const std::string& name, const tune::RunSpec& spec,
          const TrialPlace& place, const TrialReports& reports, const StopRequest& stop);

}  // namespace gallop::app

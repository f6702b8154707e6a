#pragma once

#include <string>

#include "gallop/app/tune/trial_command.h"
#include "gallop/app/tune/trial_metrics.h"
#include "gallop/base/stop.h"
#include "gallop/tune/study_client.h"
#include "gallop/tune/sweep.h"

namespace gallop::app {

/// The report unit of a study. For a recipe, resolves it with the options of a point of the space,
/// so that errors in either are found before a trial runs: throws UsageError. A command counts its
/// own reports.
ReportUnit report_unit(const Registries& registries, const tune::StudySettings& settings,
                       const tune::RunSpec& spec);

/// Throws UsageError if the program of a study's trials, its metrics (`reported` are those of its
/// recipe), its sampler or its pruner are invalid, before the study is created.
void check_study(const Registries& registries, const tune::StudySettings& settings,
                 const RecipeMetrics& reported);

/// The pruner of a study that check_study() accepts. For asha with promotion, `max_resource` is the
/// last evaluation of the recipe, if it is not given and all trials have the same.
std::string completed_pruner(const Registries& registries, const tune::StudySettings& settings,
                             const tune::RunSpec& spec);

/// Runs trials until the study needs no more, or until `stop`. `name` is the worker's. Throws the
/// errors of the client.
void work(tune::StudyClient& client, const std::string& name, const tune::RunSpec& spec,
          const TrialPlace& place, const TrialReports& reports, const StopRequest& stop);

}  // namespace gallop::app

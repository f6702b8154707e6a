#pragma once

#include <map>
#include <string>
#include <vector>

#include "gallop/app/tune/trial_metrics.h"
#include "gallop/base/child_process.h"
#include "gallop/base/file.h"
#include "gallop/tune/study_client.h"
#include "gallop/tune/sweep.h"

namespace gallop::app {

/// Where and how the trials of a study run.
struct TrialPlace {
  fs::path study;          ///< The study's folder: runs/0007 and output/0007.log for trial 7.
  std::vector<int> cores;  ///< Cores of its process; empty: all.
  std::map<std::string, std::string> variables{};
  std::vector<std::string> without{};  ///< Environment variables removed for its process.

  /// The run folder and the output file of a trial.
  fs::path run(int64_t trial) const;
  fs::path output(int64_t trial) const;
};

/// The number of checkpoints that a trial keeps for others, or can start from itself; 0 if trials
/// share no steps: for commands, if the sweep disables it, if no parameter is known to take effect
/// only later in a training, or if a metric or limit measures the process itself (seconds, joules,
/// memory_bytes). Throws UsageError if such a sweep requests sharing.
int64_t shared_checkpoints(const tune::StudySettings& settings, const tune::RunSpec& spec);

/// The command of a trial. Environment variables give its number (GALLOP_TRIAL_NUMBER), the folder
/// for its files (GALLOP_TRIAL_FOLDER), the last report to make (GALLOP_TRIAL_LAST_STEP, unless it
/// runs to its end), and the folder of its parent (GALLOP_TRIAL_PARENT_FOLDER). Throws as
/// tune::command_args() does.
ChildCommand trial_command(const tune::StudySettings& settings, const tune::RunSpec& spec,
                           const tune::Assignment& assignment, const TrialPlace& place,
                           const ReportUnit& unit);

}  // namespace gallop::app

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

/// Where a study's trials run.
struct TrialPlace {
  fs::path study;          ///< Its folder: runs/0007 and output/0007.log of trial 7.
  std::vector<int> cores;  ///< Numbers of those for its process; empty: all.
  std::map<std::string, std::string> variables{};
  std::vector<std::string> without{};  ///< Environment variables that its process does not get.

  /// Of the trial of this number.
  fs::path run(int64_t trial) const;
  fs::path output(int64_t trial) const;
};

/// How many checkpoints of a trial are kept for others, with which it also may begin; 0 where
/// trials share no steps: those of a command, where the sweep says so, where no parameter is known
/// to matter only later in a training, and where a metric or a limit is about the process itself,
/// which is shorter then (seconds, joules, memory_bytes). Throws UsageError where such a sweep
/// demands it.
int64_t shared_checkpoints(const tune::StudySettings& settings, const tune::RunSpec& spec);

/// What runs a trial. A command learns by variables which trial it is (GALLOP_TRIAL_NUMBER), where
/// it may keep its files (GALLOP_TRIAL_FOLDER), up to which report it is to run
/// (GALLOP_TRIAL_LAST_STEP, where it is not to run to its end), and from whose folder it begins
/// (GALLOP_TRIAL_PARENT_FOLDER). Throws as tune::command_args() does.
ChildCommand trial_command(const tune::StudySettings& settings, const tune::RunSpec& spec,
                           const tune::Assignment& assignment, const TrialPlace& place,
                           const ReportUnit& unit);

}  // namespace gallop::app

#pragma once

#include <limits>
#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/app/tune/study_view.h"
#include "gallop/base/stop.h"
#include "gallop/tune/study_place.h"

namespace gallop::app {

struct StudyRunConfig {
  std::string name{};  ///< Unique name of this process; empty: host name and process id.
  int workers = 1;
  int cores = 0;         ///< Per trial; 0: the trials share the cores of this process.
  int first_worker = 0;  ///< Index of the first worker among those of this host.
  /// Time limit: no trial is started after it.
  double seconds = std::numeric_limits<double>::infinity();
  /// GPU indices as in CUDA_VISIBLE_DEVICES, assigned to workers in turn; empty: workers see all
  /// GPUs.
  std::vector<std::string> gpus{};
  std::vector<std::string> without{};  ///< Environment variables removed for trials.
  std::string listen = "127.0.0.1";    ///< Address to listen on for remote workers.
  StudyView::Style style = StudyView::Style::kText;
};

/// The result of run_study(), help_study() and join_study().
struct StudyEnd {
  bool is_done = false;  ///< False after `stop`; the study can be resumed.
  bool has_led = false;  ///< This process led, and has reported the end.
};

/// Leads a study: runs its trials on this machine until it is complete, serves remote workers, and
/// reports progress. Resumes a stopped study if `resumes`.
StudyEnd run_study(const Registries& registries, const tune::StudyPlace& place,
                   const StudyRunConfig& config, bool resumes, const StopRequest& stop);

/// Works for a study that another process leads, or that is in a database, without output.
StudyEnd help_study(const Registries& registries, const tune::StudyPlace& place,
                    const StudyRunConfig& config, const StopRequest& stop);

/// How several processes agree on a leader.
struct JoinConfig {
  double wait_seconds = 0;  ///< Wait for another process to lead before leading.
  bool resumes = false;     ///< Whether this process resumes a stopped study if it leads first.
  tune::StudySettings settings{};  ///< Expected settings of the study.
};

/// Joins a study together with other processes: one leads it as run_study() does; if the leader
/// ends, another process takes over, and running trials continue. Throws UsageError if the study
/// differs from the expected one, DeviceError if it has no leader for five minutes and this process
/// cannot lead.
StudyEnd join_study(const Registries& registries, const tune::StudyPlace& place,
                    const StudyRunConfig& config, const JoinConfig& join, const StopRequest& stop);

}  // namespace gallop::app

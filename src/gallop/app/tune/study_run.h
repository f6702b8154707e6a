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
  std::string name{};  ///< Of this process, that no other has; empty: its host's and its number.
  int workers = 1;
  int cores = 0;         ///< Of each worker's trials; 0: they share those of this process.
  int first_worker = 0;  ///< Number of the first among the workers of this host.
  double seconds = std::numeric_limits<double>::infinity();  ///< No trial begins after them.
  /// Numbers as CUDA_VISIBLE_DEVICES takes them, of which workers have one each in turn; empty: all
  /// have all.
  std::vector<std::string> gpus{};
  std::vector<std::string> without{};  ///< Environment variables that trials do not get.
  std::string listen = "127.0.0.1";    ///< Where workers on other hosts reach it.
  StudyView::Style style = StudyView::Style::kText;
};

/// What came of a process's part in a study.
struct StudyEnd {
  bool is_done = false;  ///< False where `stop` was asked for: the study can go on later.
  bool has_led = false;  ///< This process, and has told of the end.
};

/// Leads a study: runs its trials on this machine until it needs no more, lets workers elsewhere
/// take part, and shows how it goes. A study that was stopped goes on where it `resumes`.
StudyEnd run_study(const Registries& registries, const tune::StudyPlace& place,
                   const StudyRunConfig& config, bool resumes, const StopRequest& stop);

/// Takes part in a study that another process leads, or that lies in a database, without a word.
StudyEnd help_study(const Registries& registries, const tune::StudyPlace& place,
                    const StudyRunConfig& config, const StopRequest& stop);

/// How several processes come to have one leader.
struct JoinConfig {
  double wait_seconds = 0;  ///< So long another process may take the lead; then this one does.
  bool resumes = false;     ///< Whether a study that was stopped goes on where this leads at first.
  tune::StudySettings settings{};  ///< As another process is to lead it.
};

/// Takes part in a study with others that do the same: one leads it as run_study() does, and where
/// that one goes, another that misses it takes the lead; trials that run go on. Throws UsageError
/// where the study that is led searches something else, DeviceError where it is not led for five
/// minutes and this process cannot.
StudyEnd join_study(const Registries& registries, const tune::StudyPlace& place,
                    const StudyRunConfig& config, const JoinConfig& join, const StopRequest& stop);

}  // namespace gallop::app

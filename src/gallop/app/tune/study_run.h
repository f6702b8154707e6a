#pragma once

#include <string>
#include <vector>

#include "gallop/app/tune/study_place.h"
#include "gallop/base/stop.h"

namespace gallop::app {

struct StudyRunConfig {
  int workers = 1;
  double seconds = std::numeric_limits<double>::infinity();  ///< No trial begins after them.
  std::vector<std::string> gpus{};
  bool json = false;   ///< One JSON object a line: a trial that ended, and the end.
  bool quiet = false;  ///< Only the end.
};

/// Runs a study's trials on this machine until it needs no more, and shows how they go. True where
/// it is done; false where `stop` was asked for, and the study can go on later.
bool run_study(const StudyPlace& place, const StudyRunConfig& config, const StopRequest& stop);

}  // namespace gallop::app

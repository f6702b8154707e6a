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
  std::string listen = "127.0.0.1";  ///< Where workers on other hosts reach it.
  bool json = false;                 ///< One JSON object a line: a trial that ended, and the end.
  bool quiet = false;                ///< Only the end.
};

/// Leads a study: runs its trials on this machine until it needs no more, lets workers elsewhere
/// take part, and shows how it goes. True where it is done; false where `stop` was asked for, and
/// the study can go on later.
bool run_study(const StudyPlace& place, const StudyRunConfig& config, const StopRequest& stop);

/// Takes part in a study that another process leads, or that lies in a database, without a word.
bool help_study(const StudyPlace& place, const StudyRunConfig& config, const StopRequest& stop);

}  // namespace gallop::app

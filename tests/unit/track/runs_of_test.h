#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "gallop/base/temporary_folder.h"
#include "gallop/track/log.h"
#include "gallop/track/run_folder.h"

namespace gallop::track {

/// A folder of runs in the format of trainings.
class RunsOfTest {
 public:
  const fs::path& path() const { return folder_.path(); }

  /// A run with evaluations after every 10 steps, which has come to its end where `finished`.
  fs::path add(const std::string& name, const std::string& recipe,
               const std::vector<double>& accuracies, bool finished = true) {
    const RunFolder run = RunFolder::create(path(), name, recipe, {.started = utc_now()});
    LogWriter log(run.log(), 0, {});
    int64_t step = 0;
    for (const double accuracy : accuracies) {
      step += 10;
      log.append({.step = step, .kind = "step", .values = {{"loss", 1 - accuracy}}});
      log.append({.step = step, .kind = "evaluation", .values = {{"accuracy", accuracy}}});
    }
    if (finished) log.append({.step = step, .kind = "end", .texts = {{"how", "finished"}}});
    return run.path();
  }

 private:
  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-runs-"};
};

}  // namespace gallop::track

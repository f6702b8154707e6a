#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/foreign_run.h"
#include "gallop/track/mlflow/client.h"

namespace gallop::track::mlflow {

/// A run of an MLflow server.
struct ServerRun {
  std::string id;
  std::string name;  ///< As run_names() makes it of the server's.
};

/// The runs of an experiment, the oldest first. Throws UsageError where there is none of this name,
/// and as Client does.
std::vector<ServerRun> find_runs(Client& client, const std::string& experiment);

/// Makes RUNS/NAME of it: every point of its metrics, its params as options, and its tags but for
/// those of MLflow itself. Points that were logged without a step, which are all of step 0 there,
/// are numbered by their time. Throws UsageError where there is such a run, and as Client does.
Imported import_run(Client& client, const ServerRun& from, const fs::path& runs,
                    const std::string& name);

}  // namespace gallop::track::mlflow

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/foreign_run.h"
#include "gallop/track/mlflow/client.h"

namespace gallop::track::mlflow {

/// A run on an MLflow server.
struct ServerRun {
  std::string id;
  std::string name;  ///< Made unique by run_names().
};

/// The runs of an experiment, oldest first. Throws UsageError for an unknown experiment, and the
/// errors of Client.
std::vector<ServerRun> find_runs(Client& client, const std::string& experiment);

/// Imports the run as RUNS/NAME: all points of its metrics, its params as options, and its tags
/// except MLflow's own. Points logged without a step, which all have step 0, are numbered by time.
/// Throws UsageError if the run exists, and the errors of Client.
Imported import_run(Client& client, const ServerRun& from, const fs::path& runs,
                    const std::string& name);

}  // namespace gallop::track::mlflow

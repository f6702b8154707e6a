#pragma once

#include <string>
#include <system_error>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The locations of runs: a runs folder, with plain names, and the folders of sweeps, with names
/// that include the sweep:
///
///     RUNS/mlp-1                   "mlp-1"
///     STUDIES/widths/runs/0007     "widths/0007"
///
/// Either may be missing.
struct RunLocations {
  fs::path runs;
  fs::path studies{};  ///< Empty: sweeps are ignored.

  /// A folder of runs and the prefix of their names.
  struct Part {
    std::string prefix;
    fs::path folder;
  };
  std::vector<Part> parts() const;

  /// The names of all runs, sorted; after an error those that could be read.
  std::vector<std::string> names(std::error_code& error) const;
  /// The folder of a known run.
  fs::path path_of(const std::string& name) const;
  /// Finds a run by name or path. Throws the errors of RunFolder::find().
  fs::path find(const std::string& name) const;
  /// Whether there is a folder of sweeps.
  bool has_studies() const;
};

/// The name of the run in a folder: the folder's name, and for a trial also that of its sweep,
/// "widths/0007".
std::string run_name_of(const fs::path& folder);
/// The sweep of a run by the run's name; empty for none.
std::string sweep_of(const std::string& name);

}  // namespace gallop::track

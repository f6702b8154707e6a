#pragma once

#include <string>
#include <system_error>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// Where runs are: in a folder of their own, by plain names, and in the folders of sweeps, by those
/// of both:
///
///     RUNS/mlp-1                   "mlp-1"
///     STUDIES/widths/runs/0007     "widths/0007"
///
/// One of the two may be missing.
struct RunPlaces {
  fs::path runs;
  fs::path studies{};  ///< Empty: sweeps are left alone.

  /// A folder of runs, and what stands before their names.
  struct Part {
    std::string prefix;
    fs::path folder;
  };
  std::vector<Part> parts() const;

  /// The names of all runs, in order; of those that can be read where there is an error.
  std::vector<std::string> names(std::error_code& error) const;
  /// Of a name that is known to be one of theirs.
  fs::path path_of(const std::string& name) const;
  /// Of a name, or a path to a run. Throws as RunFolder::find() does.
  fs::path find(const std::string& name) const;
  /// Whether there is a folder of sweeps.
  bool has_studies() const;
};

/// What the run of a folder is called: by the name of the folder, of a trial by that of its sweep
/// too, "widths/0007".
std::string run_name_of(const fs::path& folder);
/// The sweep of a run by its name; empty for none.
std::string sweep_of(const std::string& name);

}  // namespace gallop::track

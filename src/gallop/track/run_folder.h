#pragma once

#include <string>
#include <system_error>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/run_info.h"

namespace gallop::track {

/// The folder of one run, held by this process while the object lives:
///
///     recipe.yaml   the resolved recipe; a folder is a run once it is there
///     run.json      its provenance (RunInfo)
///     metrics.log   its log (track/log.h)
///     checkpoints/  its checkpoints
///     lock          the process that is training it
class RunFolder {
 public:
  /// Creates RUNS/STEM-N with the next free number; concurrent processes get different ones. Throws
  /// DeviceError if nothing can be written.
  static RunFolder create_numbered(const fs::path& runs, const std::string& stem,
                                   const std::string& recipe_yaml, const RunInfo& info);

  /// Creates RUNS/NAME, or takes over a folder whose process died before it became a run. Throws
  /// UsageError if the run exists, or for an invalid name.
  static RunFolder create(const fs::path& runs, const std::string& name,
                          const std::string& recipe_yaml, const RunInfo& info);

  /// Opens an existing run to continue it. Writes nothing yet: see claim(). Throws UsageError if it
  /// does not exist, or if another process is training it, with that process's id and host.
  static RunFolder open(const fs::path& folder);

  /// Writes this process into the lock of an opened run. Throws UsageError if the run had no lock,
  /// and another process has taken it since.
  void claim();

  /// Finds a run by its name in this folder, or by a path. Throws UsageError if there is none, with
  /// the nearest name or the existing ones.
  static fs::path find(const fs::path& runs, const std::string& name);

  /// The names of the runs in a folder, sorted, including unreadable folders; after an error those
  /// that could be listed.
  static std::vector<std::string> names_in(const fs::path& runs, std::error_code& error);

  /// Throws UsageError for an invalid run name.
  static void check_name(const std::string& name);

  /// Whether the folder contains a run. Does not lock it.
  static bool is_run(const fs::path& folder);

  /// The process that is training the run, "process 12 on host"; empty for none.
  static bool is_trained(const fs::path& folder);
  static std::string trained_by(const fs::path& folder);

  const fs::path& path() const { return path_; }
  std::string name() const { return path_.filename().string(); }
  fs::path log() const { return path_ / "metrics.log"; }
  fs::path checkpoints() const { return path_ / "checkpoints"; }

  /// Both throw DataError if the file is missing or damaged.
  static std::string read_recipe(const fs::path& folder);
  static RunInfo read_info(const fs::path& folder);

 private:
  RunFolder(fs::path path, FileDescriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  static RunFolder fill(fs::path folder, FileDescriptor lock, const std::string& recipe_yaml,
                        const RunInfo& info);

  fs::path path_;
  FileDescriptor lock_;  // Empty until claim() if the run had none.
};

}  // namespace gallop::track

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
///     run.json      what made it (RunInfo)
///     metrics.log   its log (track/log.h)
///     checkpoints/  what it continues from
///     lock          who trains in it now
class RunFolder {
 public:
  /// Makes RUNS/STEM-N with the next free number. Of processes that do so at once, each gets its
  /// own. Throws DeviceError where nothing can be written.
  static RunFolder create_numbered(const fs::path& runs, const std::string& stem,
                                   const std::string& recipe_yaml, const RunInfo& info);

  /// Makes RUNS/NAME, or takes over one that died before it became a run. Throws UsageError where
  /// there is such a run, or where the name is no plain file name.
  static RunFolder create(const fs::path& runs, const std::string& name,
                          const std::string& recipe_yaml, const RunInfo& info);

  /// Takes an existing run, to continue it. Nothing is written yet: see claim(). Throws UsageError
  /// where there is none, or where another process trains in it, with that one's number and host.
  static RunFolder open(const fs::path& folder);

  /// Writes into the lock of a run that was opened who has it. Throws UsageError where the run had
  /// no lock, and another process has taken it since.
  void claim();

  /// A run by its name in this folder, or by a path to it. Throws UsageError where there is none,
  /// with the nearest name or those that there are.
  static fs::path find(const fs::path& runs, const std::string& name);

  /// The names of the runs in a folder, in order, with those of folders that may not be read; of
  /// those that can be listed where there is an error.
  static std::vector<std::string> names_in(const fs::path& runs, std::error_code& error);

  /// Throws UsageError where the text cannot name a run.
  static void check_name(const std::string& name);

  /// Whether the folder holds a run. Takes nothing.
  static bool is_run(const fs::path& folder);

  /// Which process trains in the run now, "process 12 on host"; empty for none.
  static bool is_trained(const fs::path& folder);
  static std::string trained_by(const fs::path& folder);

  const fs::path& path() const { return path_; }
  std::string name() const { return path_.filename().string(); }
  fs::path log() const { return path_ / "metrics.log"; }
  fs::path checkpoints() const { return path_ / "checkpoints"; }

  /// Both throw DataError where the file is missing or damaged.
  static std::string read_recipe(const fs::path& folder);
  static RunInfo read_info(const fs::path& folder);

 private:
  RunFolder(fs::path path, FileDescriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  static RunFolder fill(fs::path folder, FileDescriptor lock, const std::string& recipe_yaml,
                        const RunInfo& info);

  fs::path path_;
  FileDescriptor lock_;  // Empty until claim() where the run had none.
};

}  // namespace gallop::track

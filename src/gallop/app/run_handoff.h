#pragma once

#include <map>
#include <string>

#include "gallop/base/file.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::app {

/// A file by which rank 0 reports the run that it trains to the process that started the group, so
/// that this can restart it. Its path is passed in an environment variable.
class RunHandoff {
 public:
  /// Prefix of the folder's name.
  static constexpr const char* kFolderPrefix = "gallop-run-";

  /// Creates an empty file in the folder for temporary files. Throws DeviceError on failure.
  RunHandoff();

  /// Environment variables for the processes that report.
  std::map<std::string, std::string> variables() const;
  /// The last report; empty if there is none.
  std::string read() const;

  /// Reports the folder of a run to the process that has started this one, if it requests that.
  static void tell(const fs::path& run);

 private:
  fs::path file() const { return folder_.path() / "run"; }

  TemporaryFolder folder_;
};

}  // namespace gallop::app

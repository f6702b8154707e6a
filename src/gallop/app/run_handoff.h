#pragma once

#include <map>
#include <string>

#include "gallop/base/file.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::app {

/// Where the first of several processes tells the one that has started them which run it trains, so
/// that this can start them again: a file whose path they find in their environment.
class RunHandoff {
 public:
  /// What the name of its folder begins with.
  static constexpr const char* kFolderPrefix = "gallop-run-";

  /// Makes an empty one in the folder for temporary files. Throws DeviceError where it cannot.
  RunHandoff();

  /// For the environment of those that are to tell.
  std::map<std::string, std::string> variables() const;
  /// What was told last; empty where nothing was.
  std::string read() const;

  /// Tells the folder of a run to who has started this process, if anybody wants to know.
  static void tell(const fs::path& run);

 private:
  fs::path file() const { return folder_.path() / "run"; }

  TemporaryFolder folder_;
};

}  // namespace gallop::app

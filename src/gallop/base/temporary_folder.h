#pragma once

#include "gallop/base/file.h"

namespace gallop {

/// A new folder that is removed with all in it. What is left where the process was killed is
/// removed by the next that makes one with such a name there (remove_left_folders()).
class TemporaryFolder {
 public:
  /// In `parent`, with a name that begins so. Throws DeviceError.
  TemporaryFolder(const fs::path& parent, const char* prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  FileDescriptor lock_;
};

}  // namespace gallop

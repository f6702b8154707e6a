#pragma once

#include "gallop/base/file.h"

namespace gallop {

/// A temporary folder that is removed with its content. Left-overs of killed processes are removed
/// by the next process that creates one with this prefix (remove_left_folders()).
class TemporaryFolder {
 public:
  /// Creates a folder in `parent` whose name begins with `prefix`. Throws DeviceError.
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

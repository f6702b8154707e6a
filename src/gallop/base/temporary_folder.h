#pragma once

#include "gallop/base/file.h"

namespace gallop {

/// A new folder that is removed with all in it.
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
};

}  // namespace gallop

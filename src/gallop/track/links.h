#pragma once

#include <system_error>

#include "gallop/base/file.h"

namespace gallop::track {

/// Whether the path itself is a symbolic link. A run may come from another user, and contain links
/// to files that only this user can read.
inline bool is_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(path, error));
}

}  // namespace gallop::track

#pragma once

#include <string_view>

#include "gallop/base/file.h"

namespace gallop {

/// Part of the name of a temporary file, followed by the id of its process.
inline constexpr std::string_view kTemporaryMark = ".tmp-";

/// Locks an open temporary file or folder, so that other processes do not remove it as a left-over.
/// False if one has just done so: then create another one. Without lock support by the file system,
/// it is used without a lock, and never removed.
bool lock_temporary(const FileDescriptor& file, const fs::path& path);

/// Removes the unlocked folders in `parent` that killed processes of this user have left, named
/// `prefix` plus six letters or digits. Does nothing if `parent` does not exist.
void remove_left_folders(const fs::path& parent, std::string_view prefix);
/// Removes the unlocked files in `folder` whose names end in ".tmp-NUMBER", in the same way.
void remove_left_files(const fs::path& folder);

}  // namespace gallop

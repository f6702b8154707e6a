#pragma once

#include <string_view>

#include "gallop/base/file.h"

namespace gallop {

/// In the name of a file that is being written, before the number of its process.
inline constexpr std::string_view kTemporaryMark = ".tmp-";

/// Locks an open temporary file or folder as in use, so that other processes do not remove it as a
/// left-over. False where one has just done so: then another one is to be made. Where the file
/// system has no locks it is used without, and never removed.
bool lock_temporary(const FileDescriptor& file, const fs::path& path);

/// Removes the unlocked folders in `parent` that killed processes of this user have left: those
/// named `prefix` and six letters or digits. Does nothing where `parent` does not exist.
void remove_left_folders(const fs::path& parent, std::string_view prefix);
/// Removes the unlocked files in `folder` whose names end in ".tmp-NUMBER", in the same way.
void remove_left_files(const fs::path& folder);

}  // namespace gallop

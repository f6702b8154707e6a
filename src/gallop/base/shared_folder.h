#pragma once

#include <cstdint>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// Opens a folder that is this user's own and that no other user may enter or write to. Throws
/// DeviceError that says what is wrong with it; so does a link.
FileDescriptor open_own_folder(const fs::path& folder);

/// A folder for what processes of one user on this machine share while they run: PLACE/gallop-UID,
/// the same for all of them. Whoever leaves it last removes all that is in it. What is left where
/// the last was killed is removed by the next that comes.
class SharedFolder {
 public:
  /// Where one may be: in memory, or in the folder for temporary files.
  static std::vector<fs::path> usual_places();

  /// At the first of the places where it is in use, else where `bytes` are free, else where the
  /// most are. Throws DeviceError where it can be at none.
  SharedFolder(const std::vector<fs::path>& places, int64_t bytes);
  ~SharedFolder();
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  const fs::path& path() const { return path_; }

  /// Removes what is left at these places and used by no process.
  static void remove_left(const std::vector<fs::path>& places);

 private:
  // False where another was just choosing or leaving, and is done now.
  bool take_part(const std::vector<fs::path>& places, int64_t bytes);

  fs::path path_;
  FileDescriptor folder_;  // Its shared lock says that the folder is in use.
};

}  // namespace gallop

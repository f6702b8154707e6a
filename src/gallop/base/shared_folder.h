#pragma once

#include <cstdint>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// Opens a folder that belongs to this user and that no other user may enter or write to. Throws
/// DeviceError with the reason; also for a link.
FileDescriptor open_own_folder(const fs::path& folder);

/// A folder shared by processes of one user on this machine while they run: PLACE/gallop-UID. The
/// last process to leave it removes its content. Left-overs of killed processes are removed by the
/// next one.
class SharedFolder {
 public:
  /// Possible locations: in memory, or in the folder for temporary files.
  static std::vector<fs::path> usual_places();

  /// At the first of the places where it is in use, otherwise where `bytes` are free, otherwise
  /// where the most space is free. Throws DeviceError if no place is usable.
  SharedFolder(const std::vector<fs::path>& places, int64_t bytes);
  ~SharedFolder();
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  const fs::path& path() const { return path_; }

  /// Removes unused left-overs at these places.
  static void remove_left(const std::vector<fs::path>& places);

 private:
  // False if another process was just choosing or leaving; then retry.
  bool take_part(const std::vector<fs::path>& places, int64_t bytes);

  fs::path path_;
  FileDescriptor folder_;  // A shared lock marks the folder as in use.
};

}  // namespace gallop

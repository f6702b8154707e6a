#include "gallop/base/shared_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/device_error.h"
#include "gallop/base/error.h"

namespace gallop {

namespace {

fs::path folder_at(const fs::path& place) { return place / fmt::format("gallop-{}", geteuid()); }

FileDescriptor open_at(const fs::path& place) {
  const fs::path folder = folder_at(place);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw_device_error(folder, "create", errno);
  return open_own_folder(folder);
}

// Tries to lock the folder exclusively, which succeeds if no other process uses it.
bool take_alone(const FileDescriptor& folder) {
  return flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
}

void lock_shared(const FileDescriptor& folder, const fs::path& path) {
  while (flock(folder.get(), LOCK_SH) != 0) {
    if (errno != EINTR) throw_device_error(path, "lock", errno);
  }
}

void remove_content(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

int64_t free_bytes(const FileDescriptor& folder) {
  struct statvfs info = {};
  if (fstatvfs(folder.get(), &info) != 0) return 0;
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

}  // namespace

FileDescriptor open_own_folder(const fs::path& folder) {
  FileDescriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) throw_device_error(folder, "open", errno);
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) throw_device_error(folder, "read", errno);
  if (info.st_uid != geteuid()) throw_device_error(folder, "belongs to another user");
  if ((info.st_mode & 077) != 0)
    throw_device_error(folder, "others may enter it; its mode must be 0700");
  return file;
}

std::vector<fs::path> SharedFolder::usual_places() {
  std::error_code error;
  std::vector<fs::path> places = {"/dev/shm"};
  const fs::path temporary = fs::temp_directory_path(error);
  if (!error) places.push_back(temporary);
  return places;
}

SharedFolder::SharedFolder(const std::vector<fs::path>& places, int64_t bytes) {
  while (!take_part(places, bytes)) {
  }
}

bool SharedFolder::take_part(const std::vector<fs::path>& places, int64_t bytes) {
  struct Unused {
    fs::path path;
    FileDescriptor folder;
    int64_t free;
  };
  std::vector<Unused> unused;  // Locked exclusively, so that no process uses them meanwhile.
  std::string trouble;
  for (const fs::path& place : places) {
    try {
      FileDescriptor folder = open_at(place);
      if (take_alone(folder)) {
        remove_content(folder_at(place));
        const int64_t free = free_bytes(folder);
        unused.push_back({folder_at(place), std::move(folder), free});
        continue;
      }
      const bool is_used = flock(folder.get(), LOCK_SH | LOCK_NB) == 0;
      // Holds no locks while waiting, to avoid a deadlock of two starting processes.
      unused.clear();
      if (!is_used) {
        lock_shared(folder, folder_at(place));
        return false;
      }
      path_ = folder_at(place);
      folder_ = std::move(folder);
      return true;
    } catch (const DeviceError& error) {
      if (trouble.empty()) trouble = error.what();
    }
  }
  if (unused.empty()) throw DeviceError(trouble);
  auto best =
      std::ranges::find_if(unused, [bytes](const Unused& one) { return one.free >= bytes; });
  if (best == unused.end()) best = std::ranges::max_element(unused, {}, &Unused::free);
  lock_shared(best->folder, best->path);
  path_ = best->path;
  folder_ = std::move(best->folder);
  return true;
}

SharedFolder::~SharedFolder() {
  if (take_alone(folder_)) remove_content(path_);
}

void SharedFolder::remove_left(const std::vector<fs::path>& places) {
  for (const fs::path& place : places) {
    try {
      const FileDescriptor folder = open_own_folder(folder_at(place));
      if (take_alone(folder)) remove_content(folder_at(place));
    } catch (const DeviceError&) {
      // It does not exist, or belongs to another user.
    }
  }
}

}  // namespace gallop

#include "gallop/base/left_over.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string>
#include <system_error>

namespace gallop {

namespace {

// Whether the path still refers to the opened file.
bool is_at(const FileDescriptor& file, const fs::path& path) {
  struct stat opened = {}, named = {};
  return fstat(file.get(), &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool is_own(const fs::path& path, mode_t type) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && info.st_uid == geteuid() &&
         (info.st_mode & S_IFMT) == type;
}

bool is_folder_name(std::string_view name, std::string_view prefix) {
  constexpr size_t kLetters = 6;  // Letters that mkdtemp() replaces.
  return name.starts_with(prefix) && name.size() == prefix.size() + kLetters &&
         std::all_of(name.end() - kLetters, name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

bool is_file_name(std::string_view name) {
  const size_t at = name.rfind(kTemporaryMark);
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view number = name.substr(at + kTemporaryMark.size());
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

template <typename IsName>
void remove_left(const fs::path& folder, mode_t type, const IsName& is_name) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (!is_name(path.filename().string()) || !is_own(path, type)) continue;
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0 || !is_at(file, path)) continue;
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

}  // namespace

bool lock_temporary(const FileDescriptor& file, const fs::path& path) {
  // Only a process that is removing it can hold the lock, for a short time.
  while (flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return is_at(file, path);
}

void remove_left_folders(const fs::path& parent, std::string_view prefix) {
  remove_left(parent, S_IFDIR,
              [&](const std::string& name) { return is_folder_name(name, prefix); });
}

void remove_left_files(const fs::path& folder) { remove_left(folder, S_IFREG, is_file_name); }

}  // namespace gallop

#include "gallop/data/shared_data.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/checked.h"
#include "gallop/base/device_error.h"
#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr size_t kNameLetters = 32;

void lock(const FileDescriptor& file, int operation, const fs::path& path) {
  while (flock(file.get(), operation) != 0) {
    if (errno != EINTR) throw_device_error(path, "lock", errno);
  }
}

// The lock is held until the descriptor is closed or the process dies.
FileDescriptor lock_file(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) throw_device_error(path, "create", errno);
  lock(file, LOCK_EX, path);
  return file;
}

// Everything below runs in one process at a time.
FileDescriptor lock_folder(const fs::path& folder) { return lock_file(folder / "lock"); }

// Opens the file and locks it as in use. Returns a closed descriptor if it is missing or different.
FileDescriptor open_file(const fs::path& path, const SharedPieces::Layout& wanted) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file && errno == ENOENT) return {};
  struct stat info = {};
  if (!file || fstat(file.get(), &info) != 0) throw_device_error(path, "open", errno);
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    throw_device_error(path, "others may change it, so it is not used");
  }
  lock(file, LOCK_SH, path);
  const auto layout = SharedPieces::read_layout(file);
  if (!layout || layout->identity != wanted.identity || layout->pieces != wanted.pieces) return {};
  if (wanted.piece_bytes > 0 && layout->piece_bytes != wanted.piece_bytes) return {};
  return file;
}

/// A file of the folder and its disk usage.
struct Stored {
  fs::path path;
  fs::file_time_type changed;
  int64_t expected = 0;
  int64_t taken = 0;
};

std::vector<Stored> list_files(const fs::path& folder) {
  std::vector<Stored> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().size() != kNameLetters) continue;
    const FileDescriptor file(::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info = {};
    if (!file || fstat(file.get(), &info) != 0) continue;
    const auto layout = SharedPieces::read_layout(file);
    files.push_back({.path = entry.path(),
                     .changed = entry.last_write_time(error),
                     .expected = layout ? layout->expected_bytes : 0,
                     .taken = int64_t{info.st_blocks} * 512});
  }
  std::ranges::sort(files, {}, &Stored::changed);
  return files;
}

bool remove_one_unused(const std::vector<Stored>& files) {
  for (const Stored& stored : files) {
    const FileDescriptor file(::open(stored.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (unlink(stored.path.c_str()) == 0) return true;
  }
  return false;
}

// Throws DeviceError if removing unused files does not free enough space.
void make_room(const fs::path& folder, int64_t needed, int64_t limit) {
  for (;;) {
    const auto files = list_files(folder);
    struct statvfs info = {};
    if (statvfs(folder.c_str(), &info) != 0) throw_device_error(folder, "read", errno);
    int64_t all = 0;
    int64_t free = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
    for (const Stored& file : files) {
      all += std::max(file.expected, file.taken);
      free -= std::max<int64_t>(0, file.expected - file.taken);
    }
    if (needed <= free && needed <= limit - all) return;
    if (remove_one_unused(files)) continue;
    if (needed > free) {
      throw_device_error(folder, fmt::format("{} are needed and {} are free", format_bytes(needed),
                                             format_bytes(std::max<int64_t>(0, free))));
    }
    throw_device_error(
        folder,
        fmt::format("{} are needed, and other trainings use {} of the {} that data may take",
                    format_bytes(needed), format_bytes(all), format_bytes(limit)));
  }
}

/// A file created under a temporary name and removed unless it is renamed to its final name.
class NewFile {
 public:
  NewFile(const fs::path& folder, const SharedPieces::Layout& layout)
      : path_(folder / "new"), file_(SharedPieces::create(path_, layout)) {
    lock(file_, LOCK_SH, path_);
  }
  ~NewFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  FileDescriptor take() { return std::move(file_); }
  void publish(const fs::path& path) {
    if (rename(path_.c_str(), path.c_str()) != 0) throw_device_error(path, "create", errno);
    path_.clear();
  }

 private:
  fs::path path_;
  FileDescriptor file_;
};

Block<uint8_t> block_of(std::shared_ptr<const SharedPieces> pieces, size_t bytes) {
  const uint8_t* const begin = pieces->at(0);
  return {std::shared_ptr<const uint8_t>(std::move(pieces), begin), bytes};
}

}  // namespace

SharedData::SharedData(const fs::path& folder) {
  try {
    open(folder);
  } catch (const Error& error) {
    note(error.what());
  }
}

SharedData::SharedData(const std::vector<fs::path>& places, int64_t bytes) {
  try {
    kept_.emplace(places, bytes);
    open(kept_->path());
  } catch (const Error& error) {
    note(error.what());
  }
}

void SharedData::open(const fs::path& folder) {
  path_ = folder;
  FileDescriptor file = open_own_folder(folder);
  lock(file, LOCK_SH, folder);
  // Another build may decode differently.
  program_ = file_state("/proc/self/exe");
  folder_ = std::move(file);
}

void SharedData::note(const std::string& trouble) {
  const std::lock_guard guard(mutex_);
  if (trouble_.empty()) trouble_ = trouble;
}

std::string SharedData::trouble() const {
  const std::lock_guard guard(mutex_);
  return trouble_;
}

Block<uint8_t> SharedData::content(const std::string& identity,
                                   const std::function<Bytes()>& make) {
  if (!folder_) return make();
  SharedPieces::Layout layout{.identity = xxh3_128(program_ + "\n" + identity), .pieces = 1};
  const fs::path path = path_ / layout.identity;
  FileDescriptor maker;
  try {
    maker = lock_file(path.string() + ".lock");
    const FileDescriptor guard = lock_folder(path_);
    if (FileDescriptor file = open_file(path, layout)) {
      const auto found = *SharedPieces::read_layout(file);
      auto pieces = std::make_shared<const SharedPieces>(std::move(file), found);
      if (pieces->find(0, 0) != nullptr) {
        return block_of(std::move(pieces), static_cast<size_t>(found.piece_bytes));
      }
    }
  } catch (const DeviceError& error) {
    note(error.what());
    return make();
  }
  Bytes made = make();
  if (made.size() == 0) return made;
  try {
    layout.piece_bytes = layout.expected_bytes = static_cast<int64_t>(made.size());
    const FileDescriptor guard = lock_folder(path_);
    make_room(path_, layout.expected_bytes, kNoLimit);
    NewFile file(path_, layout);
    auto pieces = std::make_shared<const SharedPieces>(file.take(), layout);
    if (pieces->get(0, 0, [&] { return made.data(); }) == nullptr)
      throw_device_error(path_, "write", ENOSPC);
    file.publish(path);
    return block_of(std::move(pieces), made.size());
  } catch (const DeviceError& error) {
    note(error.what());
    return made;
  }
}

std::shared_ptr<const SharedPieces> SharedData::pieces(const std::string& identity, int64_t count,
                                                       int64_t piece_bytes, int64_t expected_bytes,
                                                       int64_t limit_bytes) {
  if (!folder_ || count <= 0 || piece_bytes <= 0) return nullptr;
  const SharedPieces::Layout layout{.identity = xxh3_128(program_ + "\n" + identity),
                                    .pieces = count,
                                    .piece_bytes = piece_bytes,
                                    .expected_bytes = expected_bytes};
  const fs::path path = path_ / layout.identity;
  try {
    const FileDescriptor guard = lock_folder(path_);
    if (FileDescriptor file = open_file(path, layout)) {
      return std::make_shared<const SharedPieces>(std::move(file), layout);
    }
    make_room(path_, expected_bytes, limit_bytes);
    NewFile file(path_, layout);
    auto pieces = std::make_shared<const SharedPieces>(file.take(), layout);
    file.publish(path);
    return pieces;
  } catch (const DeviceError& error) {
    note(error.what());
    return nullptr;
  }
}

}  // namespace gallop::data

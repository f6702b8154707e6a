#include "gallop/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "gallop/base/device_error.h"
#include "gallop/base/error.h"
#include "gallop/base/left_over.h"
#include "gallop/base/progress.h"
#include "gallop/base/text.h"

namespace gallop {

namespace {

constexpr size_t kWrittenAtOnce = size_t{64} << 20;

struct stat stat_open_file(const FileDescriptor& file, const fs::path& path) {
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) throw_read_error(path, "read", errno);
  if (S_ISDIR(info.st_mode)) throw_read_error(path, "read", EISDIR);
  return info;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

FileDescriptor open_for_reading(const fs::path& path) {
  // Non-blocking, as opening a FIFO would wait for a writer.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) throw_read_error(path, "open", errno);
  return file;
}

std::string read_file(const fs::path& path, int64_t max_bytes) {
  const FileDescriptor file = open_for_reading(path);
  const int64_t size = stat_open_file(file, path).st_size;
  if (size > max_bytes) {
    throw DataError(fmt::format("{}: {} where at most {} are expected", printable(path.string()),
                                format_bytes(size), format_bytes(max_bytes)));
  }
  std::string content(static_cast<size_t>(size), '\0');
  if (!read_exactly(file, path, 0, content.data(), size)) {
    throw DataError(fmt::format("{}: became shorter while it was read", printable(path.string())));
  }
  return content;
}

bool read_exactly(const FileDescriptor& file, const fs::path& path, int64_t offset, void* out,
                  int64_t bytes) {
  auto* at = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(file.get(), at, static_cast<size_t>(bytes), offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw_read_error(path, "read", errno);
    }
    if (got == 0) return false;
    at += got;
    offset += got;
    bytes -= got;
  }
  return true;
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const FileDescriptor file = open_for_reading(path);
  size_ = static_cast<size_t>(stat_open_file(file, path).st_size);
  if (size_ == 0) return;
  void* data = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) throw_read_error(path, "map into memory", errno);
  data_ = static_cast<const char*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

namespace {

// Starts writing the last part of a large file to disk while the next one is written, so that the
// final sync is short. Without support by the file system, the final sync does all the work.
void sync_behind(int file, ssize_t written) {
  constexpr auto kPart = static_cast<off_t>(kWrittenAtOnce);
  constexpr unsigned kStart = SYNC_FILE_RANGE_WRITE;
  constexpr unsigned kWait = SYNC_FILE_RANGE_WAIT_BEFORE | kStart | SYNC_FILE_RANGE_WAIT_AFTER;
  const off_t end = lseek(file, 0, SEEK_CUR), parts = end / kPart;
  if (parts == (end - written) / kPart) return;
  if (parts > 1) sync_file_range(file, (parts - 2) * kPart, kPart, kWait);
  sync_file_range(file, (parts - 1) * kPart, kPart, kStart);
  note_progress();
}

}  // namespace

FileWriter::FileWriter(const fs::path& path, mode_t mode, fs::path name)
    : name_(std::move(name)),
      file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)) {
  if (!file_) throw_device_error(name_, "create", errno);
}

void FileWriter::write(const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file_.get(), at, std::min(bytes, kWrittenAtOnce));
    if (written < 0) {
      if (errno == EINTR) continue;
      throw_device_error(name_, "write", errno);
    }
    at += written;
    bytes -= static_cast<size_t>(written);
    sync_behind(file_.get(), written);
  }
}

void FileWriter::finish() {
  if (fsync(file_.get()) != 0) throw_device_error(name_, "write", errno);
  file_ = FileDescriptor();
  note_progress();
}

void write_file_atomically(const fs::path& path, std::string_view content, mode_t mode) {
  const fs::path temporary = path.string() + fmt::format("{}{}", kTemporaryMark, getpid());
  try {
    // Locked while it is written, so that it is not removed as a left-over of a killed process.
    std::optional<FileWriter> writer;
    FileDescriptor lock;
    do {
      writer.emplace(temporary, mode, path);
      lock = FileDescriptor(open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
      if (!lock && errno != ENOENT) throw_device_error(path, "create", errno);
    } while (!lock || !lock_temporary(lock, temporary));
    writer->write(content);
    writer->finish();
    if (rename(temporary.c_str(), path.c_str()) != 0) throw_device_error(path, "replace", errno);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

void sync_folder(const fs::path& folder) {
  const FileDescriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file) throw_device_error(folder, "open", errno);
  // Some file systems cannot sync a folder and return EINVAL.
  if (fsync(file.get()) != 0 && errno != EINVAL) throw_device_error(folder, "write", errno);
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_device_error(folder, "create", error.value());
}

std::optional<FileLock> FileLock::try_lock(const fs::path& path, std::string_view owner) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file) throw_device_error(path, "create", errno);
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) throw_device_error(path, "lock", errno);
  }
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), owner.data(), owner.size(), 0) != static_cast<ssize_t>(owner.size())) {
    throw_device_error(path, "write", errno);
  }
  return FileLock(std::move(file));
}

std::string FileLock::owner_of(const fs::path& path) {
  try {
    return read_file(path, 4096);
  } catch (const DataError&) {
    return {};
  }
}

fs::path user_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return fs::path(cache) / "gallop";
  }
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr && *home != '\0' ? home : "/tmp") / ".cache" / "gallop";
}

}  // namespace gallop

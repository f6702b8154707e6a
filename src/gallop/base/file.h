#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace gallop {

namespace fs = std::filesystem;

/// An owning file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return fd_; }
  /// Releases ownership without closing.
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Opens for reading. Throws DataError with the system's reason.
FileDescriptor open_for_reading(const fs::path& path);

/// Reads a whole file. Throws DataError if it cannot be read or is longer than `max_bytes`.
std::string read_file(const fs::path& path, int64_t max_bytes = int64_t{1} << 40);

/// Reads exactly `bytes` at `offset` into `out`; false if the file ends before. Throws DataError on
/// a read error; `path` is only used in the message.
bool read_exactly(const FileDescriptor& file, const fs::path& path, int64_t offset, void* out,
                  int64_t bytes);

/// A file mapped read-only into memory.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

/// Writes a new file incrementally and syncs it. Throws DeviceError (full disk, read-only folder,
/// ...) with the file's name and the system's reason.
class FileWriter {
 public:
  explicit FileWriter(const fs::path& path, mode_t mode = 0644) : FileWriter(path, mode, path) {}
  /// Error messages use `name`, the final name of the file.
  FileWriter(const fs::path& path, mode_t mode, fs::path name);
  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Syncs and closes the file. Without it, the content may be incomplete.
  void finish();

 private:
  fs::path name_;
  FileDescriptor file_;
};

/// Atomically replaces `path`: a reader sees the old or the new file, never a part, even after a
/// crash. `mode` are the permissions. Throws DeviceError.
void write_file_atomically(const fs::path& path, std::string_view content, mode_t mode = 0644);

/// Syncs a folder, so that renames in it are durable. Throws DeviceError.
void sync_folder(const fs::path& folder);

/// Creates the folder and its parents. Throws DeviceError with the system's reason.
void make_folders(const fs::path& folder);

/// An exclusive lock on a file (flock), held while the object lives and released by the kernel when
/// the process dies.
class FileLock {
 public:
  /// Takes the lock and writes `owner` into the file; nothing if another process holds it. Throws
  /// DeviceError if the file cannot be created.
  static std::optional<FileLock> try_lock(const fs::path& path, std::string_view owner);
  /// The text written by the current owner; empty if unknown.
  static std::string owner_of(const fs::path& path);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

/// ${XDG_CACHE_HOME:-~/.cache}/gallop. The folder need not exist.
fs::path user_cache_folder();

}  // namespace gallop

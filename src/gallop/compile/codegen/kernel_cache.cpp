#include "gallop/compile/codegen/kernel_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/library.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::compile {

namespace {

constexpr std::string_view kMark = "gallop kernels ";
constexpr size_t kHashLetters = 32;
constexpr int64_t kLargest = int64_t{64} << 20;  // Size of one library.

bool is_sound(std::string_view file) {
  const size_t trailer = kMark.size() + kHashLetters;
  if (file.size() <= trailer) return false;
  const std::string_view content = file.substr(0, file.size() - trailer);
  const std::string_view end = file.substr(content.size());
  return end.starts_with(kMark) && end.substr(kMark.size()) == xxh3_128(content);
}

[[noreturn]] void fail(const fs::path& path, const char* what, int error) {
  throw DeviceError(
      fmt::format("{}: {}: {}", path.string(), what, std::generic_category().message(error)));
}

struct StoredFile {
  fs::path path;
  int64_t used;  // Nanoseconds.
  int64_t bytes;
  ino_t inode;
};

std::vector<StoredFile> list_files(const fs::path& folder) {
  std::vector<StoredFile> files;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    struct stat info = {};
    if (stat(at->path().c_str(), &info) != 0) continue;
    files.push_back({.path = at->path(),
                     .used = info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec,
                     .bytes = info.st_size,
                     .inode = info.st_ino});
  }
  return files;
}

}  // namespace

KernelCache::KernelCache(fs::path folder, int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  make_folders(folder_.has_parent_path() ? folder_.parent_path() : fs::path("."));
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) fail(folder_, "cannot create", errno);
  struct stat info = {};
  if (stat(folder_.c_str(), &info) != 0) fail(folder_, "cannot read", errno);
  // Code that is loaded from here runs with this user's rights.
  if (info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw DeviceError(
        fmt::format("{}: others may write to it, so kernels are not loaded from it; make it yours "
                    "alone (chown, chmod 700)",
                    folder_.string()));
  }
  if (access(folder_.c_str(), W_OK) != 0) fail(folder_, "cannot write", errno);
}

std::shared_ptr<void> KernelCache::find(const std::string& key) const {
  const fs::path path = path_of(key);
  std::error_code ignored;
  std::string error;
  try {
    if (!fs::exists(path, ignored)) return nullptr;
    if (is_sound(read_file(path, kLargest))) {
      if (auto library = load_library(path, error)) {
        fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
        return library;
      }
    }
  } catch (const DataError&) {
    // It was removed in the meantime, or is not a file.
  }
  fs::remove(path, ignored);
  return nullptr;
}

std::optional<std::string> KernelCache::find_binary(const std::string& key) const {
  const fs::path path = binary_of(key);
  std::error_code ignored;
  try {
    if (!fs::exists(path, ignored)) return std::nullopt;
    std::string file = read_file(path, kLargest);
    if (is_sound(file)) {
      fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
      file.resize(file.size() - kMark.size() - kHashLetters);
      return file;
    }
  } catch (const DataError&) {
    // As above.
  }
  fs::remove(path, ignored);
  return std::nullopt;
}

void KernelCache::publish(const fs::path& library, const std::vector<std::string>& keys) const {
  std::vector<fs::path> paths;
  for (const std::string& key : keys) paths.push_back(path_of(key));
  write(read_file(library, kLargest), paths);
}

void KernelCache::publish_binary(const std::string& content, const std::string& key) const {
  write(content, {binary_of(key)});
}

void KernelCache::write(const std::string& content, const std::vector<fs::path>& paths) const {
  const TemporaryFolder folder(folder_, kNewFolder);
  const fs::path whole = folder.path() / "whole";
  FileWriter writer(whole);
  writer.write(content);
  writer.write(kMark);
  writer.write(xxh3_128(content));
  writer.finish();
  for (const fs::path& path : paths) {
    // Hard links to one file, or copies if the file system does not support links.
    const fs::path name = folder.path() / path.filename();
    std::error_code error;
    fs::create_hard_link(whole, name, error);
    if (error) {
      const std::string all = read_file(whole, 2 * kLargest);
      FileWriter copy(name);
      copy.write(all);
      copy.finish();
    }
    if (rename(name.c_str(), path.c_str()) != 0) fail(path, "cannot replace", errno);
  }
  sync_folder(folder_);
  remove_oldest();
}

void KernelCache::remove_oldest() const {
  std::vector<StoredFile> files = list_files(folder_);
  std::sort(files.begin(), files.end(),
            [](const StoredFile& a, const StoredFile& b) { return a.used > b.used; });
  std::set<ino_t> counted;
  int64_t bytes = 0;
  std::error_code ignored;
  for (const StoredFile& file : files) {
    if (file.path.filename().string().starts_with(kNewFolder)) continue;
    if (file.path.extension() != ".so" && file.path.extension() != ".gpu") continue;
    if (counted.insert(file.inode).second) bytes += file.bytes;
    if (bytes > max_bytes_) fs::remove(file.path, ignored);
  }
}

}  // namespace gallop::compile

#include "gallop/track/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "gallop/base/device_error.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/left_over.h"
#include "gallop/base/text.h"
#include "gallop/track/links.h"

namespace gallop::track {

namespace {

constexpr const char* kRecipe = "recipe.yaml";
constexpr const char* kInfo = "run.json";
constexpr const char* kLock = "lock";
constexpr size_t kMostNamed = 8;  // Names listed in an error.

std::string name_of(const fs::path& path) { return printable(path.string()); }

// False if it already exists.
bool make_folder(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0777) == 0) return true;
  if (errno == EEXIST) return false;
  throw_device_error(folder, "create", errno);
}

// N for "STEM-N", 0 for any other name.
int64_t number_of(const std::string& name, const std::string& stem) {
  if (!name.starts_with(stem + "-")) return 0;
  const auto number = parse_number<int64_t>(std::string_view(name).substr(stem.size() + 1));
  return std::max<int64_t>(number.value_or(0), 0);
}

int64_t next_number(const fs::path& runs, const std::string& stem) {
  int64_t highest = 0;
  for (const auto& entry : fs::directory_iterator(runs)) {
    highest = std::max(highest, number_of(entry.path().filename().string(), stem));
  }
  return highest + 1;
}

// Includes unreadable folders, for which this cannot be determined.
bool may_be_run(const fs::path& folder) {
  std::error_code error;
  return (fs::is_regular_file(folder / kRecipe, error) && !is_link(folder / kRecipe)) ||
         error == std::errc::permission_denied;
}

std::string owner_of_lock(const fs::path& path) {
  const std::string owner = FileLock::owner_of(path);
  return owner.empty() ? "another process" : printable(owner);
}

// False if another process holds the lock.
bool try_lock(const FileDescriptor& file, const fs::path& path) {
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) throw_device_error(path, "lock", errno);
  }
  return true;
}

// Opens the lock file and locks it; created if `flags` say so, otherwise empty if it does not
// exist. Retries, as the lock is held briefly by processes that check whether a run is training,
// and by a forked child of a killed process before its exec.
FileDescriptor take_lock(const fs::path& folder, int flags) {
  constexpr int kTimes = 200;
  const fs::path path = folder / kLock;
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0644));
  if (!file && errno == ENOENT && flags == 0) return file;
  if (!file) throw_device_error(path, "open", errno);
  for (int time = 0; time < kTimes; ++time) {
    if (try_lock(file, path)) return file;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw UsageError(fmt::format("{}: {} is training this run; wait for it, or choose another name",
                               name_of(folder), owner_of_lock(path)));
}

void write_owner(const FileDescriptor& lock, const fs::path& folder) {
  const std::string owner = fmt::format("process {} on {}", getpid(), host_name());
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), owner.data(), owner.size(), 0) != static_cast<ssize_t>(owner.size())) {
    throw_device_error(folder / kLock, "write", errno);
  }
}

FileDescriptor make_lock(const fs::path& folder) {
  FileDescriptor lock = take_lock(folder, O_CREAT);
  write_owner(lock, folder);
  return lock;
}

}  // namespace

fs::path RunFolder::find(const fs::path& runs, const std::string& name) {
  if (name.find('/') == std::string::npos && is_run(runs / name)) return runs / name;
  const fs::path path = fs::path(name).lexically_normal();
  if (is_run(path)) return path.has_filename() ? path : path.parent_path();
  for (const fs::path& place : {runs / name, path}) {
    if (may_be_run(place)) throw DataError(fmt::format("{}: permission denied", name_of(place)));
  }
  std::error_code ignored;
  const auto names = names_in(runs, ignored);
  const std::string nearest = nearest_name(name, names);
  std::string end = "; 'gallop runs' lists the runs";
  if (!nearest.empty()) {
    end = fmt::format("; did you mean '{}'?", printable(nearest));
  } else if (names.empty()) {
    end = ", which has no runs; use --runs FOLDER for another folder";
  } else if (names.size() <= kMostNamed) {
    end = "; it has " + printable(join_names(names, "and"));
  }
  throw UsageError(
      fmt::format("there is no run '{}' in {}{}", printable(name), name_of(runs), end));
}

std::vector<std::string> RunFolder::names_in(const fs::path& runs, std::error_code& error) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(runs, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && may_be_run(entry.path())) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void RunFolder::check_name(const std::string& name) {
  constexpr size_t kMaxBytes = 200;
  const bool control = std::any_of(name.begin(), name.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
  });
  if (name.empty() || name.size() > kMaxBytes || name.front() == '.' || control ||
      name.find('/') != std::string::npos) {
    throw UsageError(
        fmt::format("'{}' is not a valid run name: use a plain file name that does not "
                    "start with a dot",
                    printable(name)));
  }
}

RunFolder RunFolder::create_numbered(const fs::path& runs, const std::string& stem,
                                     const std::string& recipe_yaml, const RunInfo& info) {
  check_name(stem);
  make_folders(runs);
  int64_t number = next_number(runs, stem);
  fs::path folder = runs / fmt::format("{}-{}", stem, number);
  while (!make_folder(folder)) folder = runs / fmt::format("{}-{}", stem, ++number);
  return fill(folder, make_lock(folder), recipe_yaml, info);
}

RunFolder RunFolder::create(const fs::path& runs, const std::string& name,
                            const std::string& recipe_yaml, const RunInfo& info) {
  check_name(name);
  make_folders(runs);
  const fs::path folder = runs / name;
  make_folder(folder);
  FileDescriptor lock = make_lock(folder);
  // Checked under the lock, so that of two processes only one creates the run.
  if (is_run(folder)) {
    throw UsageError(
        fmt::format("{}: a run of this name already exists; continue it, delete it or choose "
                    "another name",
                    name_of(folder)));
  }
  return fill(folder, std::move(lock), recipe_yaml, info);
}

RunFolder RunFolder::fill(fs::path folder, FileDescriptor lock, const std::string& recipe_yaml,
                          const RunInfo& info) {
  write_file_atomically(folder / kInfo, to_json(info));
  // Written last, as it makes the folder a run.
  write_file_atomically(folder / kRecipe, recipe_yaml);
  sync_folder(folder.parent_path());
  return RunFolder(std::move(folder), std::move(lock));
}

RunFolder RunFolder::open(const fs::path& folder) {
  if (!is_run(folder)) {
    throw UsageError(fmt::format("{}: not a run: it has no {}", name_of(folder), kRecipe));
  }
  return RunFolder(folder, take_lock(folder, 0));
}

void RunFolder::claim() {
  if (lock_) {
    write_owner(lock_, path_);
  } else {
    lock_ = make_lock(path_);
  }
  remove_left_files(path_);
}

bool RunFolder::is_run(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / kRecipe, error) && !is_link(folder / kRecipe);
}

bool RunFolder::is_trained(const fs::path& folder) {
  const FileDescriptor file(::open((folder / kLock).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string RunFolder::trained_by(const fs::path& folder) {
  return is_trained(folder) ? owner_of_lock(folder / kLock) : "";
}

std::string RunFolder::read_recipe(const fs::path& folder) {
  return read_file(folder / kRecipe, int64_t{1} << 24);
}

RunInfo RunFolder::read_info(const fs::path& folder) {
  const fs::path path = folder / kInfo;
  return run_info_from_json(read_file(path, int64_t{1} << 28), path.string());
}

}  // namespace gallop::track

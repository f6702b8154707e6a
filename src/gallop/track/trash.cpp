#include "gallop/track/trash.h"

#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/run_folder.h"

namespace gallop::track {

namespace {

constexpr const char* kTrash = ".trash";

// NAME, NAME.2, NAME.3 ...
fs::path place(const fs::path& trash, const std::string& name, int number) {
  return trash / (number == 1 ? name : fmt::format("{}.{}", name, number));
}

// Of the next that comes.
int next_number(const fs::path& trash, const std::string& name) {
  int number = 1;
  while (fs::exists(place(trash, name, number))) ++number;
  return number;
}

void move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return;
  throw DeviceError(fmt::format("{}: cannot be moved to {}: {}", printable(from.string()),
                                printable(to.string()), error.message()));
}

}  // namespace

void check_idle(const fs::path& folder) {
  const std::string owner = RunFolder::trained_by(folder);
  if (owner.empty()) return;
  throw UsageError(
      fmt::format("{}: {} is training there; stop it first", printable(folder.string()), owner));
}

fs::path move_to_trash(const fs::path& folder) {
  check_idle(folder);
  const fs::path trash = folder.parent_path() / kTrash;
  const std::string name = folder.filename().string();
  make_folders(trash);
  fs::path target = place(trash, name, next_number(trash, name));
  move(folder, target);
  return target;
}

fs::path restore_from_trash(const fs::path& runs, const std::string& name) {
  RunFolder::check_name(name);
  const fs::path trash = runs / kTrash;
  fs::path target = runs / name;
  const int next = next_number(trash, name);
  if (next == 1) {
    throw UsageError(fmt::format("{} has no '{}'", printable(trash.string()), printable(name)));
  }
  if (fs::exists(target)) {
    throw UsageError(fmt::format("there is a run at {}", printable(target.string())));
  }
  move(place(trash, name, next - 1), target);
  return target;
}

}  // namespace gallop::track

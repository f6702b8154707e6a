#include "gallop/track/trash.h"

#include <algorithm>
#include <map>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/run_folder.h"

namespace gallop::track {

namespace {

constexpr const char* kTrash = ".trash";

// NAME, .2/NAME, .3/NAME ...: run names do not begin with a dot.
fs::path place(const fs::path& trash, const std::string& name, int number) {
  return number == 1 ? trash / name : trash / fmt::format(".{}", number) / name;
}

// The last number of each name.
std::map<std::string, int> last_numbers(const fs::path& trash) {
  std::map<std::string, int> numbers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(trash, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.')) {
      numbers.try_emplace(name, 1);
      continue;
    }
    const int number = parse_number<int>(std::string_view(name).substr(1)).value_or(0);
    if (number < 2) continue;
    for (const auto& inner : fs::directory_iterator(entry.path(), error)) {
      int& last = numbers[inner.path().filename().string()];
      last = std::max(last, number);
    }
  }
  return numbers;
}

// 0 for an unknown name.
int last_number(const fs::path& trash, const std::string& name) {
  const auto numbers = last_numbers(trash);
  const auto found = numbers.find(name);
  return found != numbers.end() ? found->second : 0;
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
      fmt::format("{}: {} is training this run; stop it first", printable(folder.string()), owner));
}

fs::path move_to_trash(const fs::path& folder) {
  check_idle(folder);
  const fs::path trash = folder.parent_path() / kTrash;
  const std::string name = folder.filename().string();
  fs::path target = place(trash, name, last_number(trash, name) + 1);
  make_folders(target.parent_path());
  move(folder, target);
  return target;
}

std::vector<std::string> names_in_trash(const fs::path& runs) {
  std::vector<std::string> names;
  for (const auto& [name, number] : last_numbers(runs / kTrash)) names.push_back(name);
  return names;
}

fs::path restore_from_trash(const fs::path& runs, const std::string& name) {
  RunFolder::check_name(name);
  const fs::path trash = runs / kTrash;
  fs::path target = runs / name;
  const int number = last_number(trash, name);
  if (number == 0) {
    throw UsageError(fmt::format("{} has no '{}'", printable(trash.string()), printable(name)));
  }
  if (fs::exists(target)) {
    throw UsageError(fmt::format("a run already exists at {}", printable(target.string())));
  }
  move(place(trash, name, number), target);
  return target;
}

}  // namespace gallop::track

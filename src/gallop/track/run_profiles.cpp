#include "gallop/track/run_profiles.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/left_over.h"
#include "gallop/track/links.h"

namespace gallop::track {

namespace {

constexpr std::string_view kPrefix = "step-", kEnding = ".json";
constexpr int64_t kMostBytes = int64_t{256} << 20;

fs::path folder_of(const fs::path& run) { return run / "profiles"; }

fs::path file_of(const fs::path& run, int64_t step) {
  return folder_of(run) / fmt::format("{}{}{}", kPrefix, step, kEnding);
}

fs::path traces_of(const fs::path& run, int64_t step) {
  return folder_of(run) / fmt::format("{}{}", kPrefix, step);
}

fs::path trace_of(const fs::path& run, int64_t step, int64_t rank) {
  return traces_of(run, step) / fmt::format("rank-{}.json.gz", rank);
}

// The step of "step-1000" and "step-1000.json".
std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (name.ends_with(kEnding)) name.remove_suffix(kEnding.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  return is_number && step >= 0 ? std::optional(step) : std::nullopt;
}

std::vector<fs::path> entries_of(const fs::path& run) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_of(run), ignored)) {
    entries.push_back(entry.path());
  }
  return entries;
}

void discard(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return;
  throw DeviceError(fmt::format("cannot remove {}: {}", path.string(), error.message()));
}

std::optional<std::string> read_if_there(const fs::path& file) {
  if (!fs::exists(file) || is_link(file)) return std::nullopt;
  return read_file(file, kMostBytes);
}

}  // namespace

void write_run_profile(const fs::path& run, int64_t step, const std::string& json,
                       const std::vector<std::string>& traces) {
  discard(file_of(run, step));
  discard(traces_of(run, step));
  make_folders(traces_of(run, step));
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    write_file_atomically(trace_of(run, step, static_cast<int64_t>(rank)), traces[rank]);
  }
  write_file_atomically(file_of(run, step), json);
}

std::vector<int64_t> run_profiles_of(const fs::path& run) {
  std::vector<int64_t> steps;
  for (const fs::path& entry : entries_of(run)) {
    const auto step = step_of(entry.filename().string());
    if (step && entry.extension() == kEnding) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<std::string> read_run_profile(const fs::path& run, int64_t step) {
  if (is_link(folder_of(run))) return std::nullopt;
  return read_if_there(file_of(run, step));
}

std::optional<std::string> read_run_trace(const fs::path& run, int64_t step, int64_t rank) {
  if (is_link(folder_of(run)) || is_link(traces_of(run, step))) return std::nullopt;
  return read_if_there(trace_of(run, step, rank));
}

void keep_run_profiles(const fs::path& run, int64_t most) {
  std::vector<int64_t> steps = run_profiles_of(run);
  steps.resize(static_cast<size_t>(std::max<int64_t>(0, std::ssize(steps) - most)));
  for (const int64_t step : steps) {
    // Without its file, a profile does not exist.
    discard(file_of(run, step));
    discard(traces_of(run, step));
  }
}

void remove_run_profiles_after(const fs::path& run, int64_t step) {
  remove_left_files(folder_of(run));
  const std::vector<int64_t> complete = run_profiles_of(run);
  std::vector<fs::path> folders;
  for (const fs::path& entry : entries_of(run)) {
    const auto of = step_of(entry.filename().string());
    if (!of) continue;
    const bool is_complete = std::binary_search(complete.begin(), complete.end(), *of);
    if (is_complete && *of <= step) continue;
    // Without its file, a profile does not exist.
    if (entry.extension() == kEnding) {
      discard(entry);
    } else {
      folders.push_back(entry);
    }
  }
  for (const fs::path& folder : folders) discard(folder);
}

}  // namespace gallop::track

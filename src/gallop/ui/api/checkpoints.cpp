#include "gallop/ui/api/checkpoints.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "gallop/base/error.h"

namespace gallop::ui::api {

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

std::optional<CheckpointRow> read_row(const fs::path& folder) {
  try {
    const fs::path manifest = folder / "manifest.json";
    const auto json = nlohmann::json::parse(read_file(manifest, kMostBytes));
    CheckpointRow row;
    row.name = folder.filename().string();
    json.at("step").get_to(row.step);
    for (const auto& [name, file] : json.at("files").items()) {
      row.bytes += file.at("bytes").get<int64_t>();
    }
    struct stat info = {};
    if (stat(manifest.c_str(), &info) == 0) row.time = static_cast<double>(info.st_mtim.tv_sec);
    return row;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Reads the name in a one-line file; empty if there is none.
std::string read_pointer(const fs::path& path) {
  constexpr int64_t kMostNameBytes = 1000;
  try {
    const std::string text = read_file(path, kMostNameBytes);
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<CheckpointRow> read_checkpoints(const fs::path& run) {
  const fs::path folder = run / "checkpoints";
  std::vector<CheckpointRow> rows;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with('.') || !entry.is_directory(error)) continue;
    if (auto row = read_row(entry.path())) rows.push_back(std::move(*row));
  }
  for (const char* mark : {"latest", "best"}) {
    const std::string name = read_pointer(folder / mark);
    for (CheckpointRow& row : rows) {
      if (row.name == name) row.marks.emplace_back(mark);
    }
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.step < b.step || (a.step == b.step && a.name < b.name);
  });
  return rows;
}

}  // namespace gallop::ui::api

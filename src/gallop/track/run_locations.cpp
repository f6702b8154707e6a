#include "gallop/track/run_locations.h"

#include <algorithm>

#include "gallop/base/text.h"
#include "gallop/track/run_folder.h"

namespace gallop::track {

namespace {

constexpr const char* kRunsOfSweep = "runs";

}  // namespace

std::vector<RunLocations::Part> RunLocations::parts() const {
  std::error_code error;
  // There may be sweeps only.
  std::vector<Part> parts;
  if (!has_studies() || fs::exists(runs, error)) parts.push_back({"", runs});
  if (!has_studies()) return parts;
  for (const auto& entry : fs::directory_iterator(studies, error)) {
    const fs::path folder = entry.path() / kRunsOfSweep;
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) continue;
    parts.push_back({entry.path().filename().string() + "/", folder});
  }
  return parts;
}

std::vector<std::string> RunLocations::names(std::error_code& error) const {
  std::vector<std::string> names;
  for (const Part& part : parts()) {
    std::error_code here;
    for (const std::string& name : RunFolder::names_in(part.folder, here)) {
      names.push_back(part.prefix + name);
    }
    if (here && part.prefix.empty()) error = here;
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path RunLocations::path_of(const std::string& name) const {
  const std::string sweep = sweep_of(name);
  if (sweep.empty()) return runs / name;
  return studies / sweep / kRunsOfSweep / name.substr(sweep.size() + 1);
}

fs::path RunLocations::find(const std::string& name) const {
  if (!sweep_of(name).empty() && !RunFolder::is_run(name)) {
    fs::path folder = path_of(name);
    if (RunFolder::is_run(folder)) return folder;
  }
  return RunFolder::find(runs, name);
}

std::string run_name_of(const fs::path& folder) {
  const fs::path runs = fs::absolute(folder).lexically_normal().parent_path();
  const fs::path sweep = runs.parent_path();
  std::string name = folder.filename().string();
  std::error_code error;
  const bool is_trial =
      runs.filename() == kRunsOfSweep && parse_number<int64_t>(name) &&
      fs::exists(sweep / "sweep.yaml", error) &&
      (fs::exists(sweep / "study.db", error) || fs::exists(sweep / "store", error));
  return is_trial ? sweep.filename().string() + "/" + name : name;
}

bool RunLocations::has_studies() const {
  std::error_code error;
  return !studies.empty() && fs::is_directory(studies, error);
}

std::string sweep_of(const std::string& name) {
  const size_t slash = name.find('/');
  return slash == std::string::npos ? std::string() : name.substr(0, slash);
}

}  // namespace gallop::track

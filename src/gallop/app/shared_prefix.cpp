#include "gallop/app/shared_prefix.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/common_steps.h"
#include "gallop/app/json_line.h"
#include "gallop/app/print.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/log.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/progress.h"

namespace gallop::app {

namespace {

using train::CheckpointInfo;

constexpr const char* kShared = "shared.json";
constexpr const char* kSharing = "sharing";  // Exists while a prefix is being taken over.
constexpr const char* kForeign = "foreign-steps";
constexpr const char* kLog = "metrics.log";
constexpr int64_t kLargestNote = 1 << 16;

struct Measured {
  const char* path;
  std::string train::TrainConfig::*value;
};
constexpr std::array<Measured, 3> kMeasured = {
    {{"train.precision", &train::TrainConfig::precision},
     {"train.channels_last", &train::TrainConfig::channels_last},
     {"train.compile", &train::TrainConfig::compile}}};

// Resolves unresolved options with the sibling's measurements.
ResolvedRecipe settled(const ResolvedRecipe& resolved, const Recipe& prefix_source) {
  ResolvedRecipe settled = resolved;
  for (const auto& [path, value] : kMeasured) {
    if (resolved.recipe.train.*value == "auto") settled.resolve(path, prefix_source.train.*value);
  }
  return settled;
}

std::optional<Recipe> recipe_of(const Registries& registries, const fs::path& folder) {
  try {
    if (!track::RunFolder::is_run(folder) || fs::exists(folder / kForeign)) return {};
    return parse_recipe(registries, track::RunFolder::read_recipe(folder),
                        (folder / "recipe.yaml").string(), {}, PluginUse::kRefuse)
        .recipe;
  } catch (const Error&) {
    return {};  // It belongs to another version, or is being created.
  }
}

// Bit-identical results require the same kernels and number of threads.
bool compute_alike(const track::RunInfo& one, const track::RunInfo& other, const Recipe& recipe) {
  const Hardware &a = one.hardware, &b = other.hardware;
  const bool on_one_device = recipe.train.device == "cpu" || a.host == b.host;
  const bool have_same_threads = recipe.train.threads > 0 || a.threads == b.threads;
  return one.version == other.version && one.commit == other.commit && a.cpu_model == b.cpu_model &&
         a.instruction_sets == b.instruction_sets && on_one_device && have_same_threads;
}

bool learn_from_the_same(const track::RunInfo& one, const track::RunInfo& other) {
  return std::equal(one.data_files.begin(), one.data_files.end(), other.data_files.begin(),
                    other.data_files.end(), [](const auto& a, const auto& b) {
                      return a.path == b.path && a.bytes == b.bytes;
                    });
}

/// A sibling's checkpoint from which the run could start.
struct Candidate {
  fs::path run;
  CheckpointInfo checkpoint;
};

std::vector<Candidate> candidates_of(Session& session, const track::RunInfo& info,
                                     const std::vector<PrefixSource>& prefix_sources,
                                     int64_t last) {
  std::vector<Candidate> candidates;
  for (const PrefixSource& prefix_source : prefix_sources) {
    try {
      const track::RunInfo other = track::RunFolder::read_info(prefix_source.folder);
      if (!compute_alike(info, other, session.recipe()) || !learn_from_the_same(info, other)) {
        continue;
      }
    } catch (const Error&) {
      continue;
    }
    const int64_t common = app::common_steps(session.registries(), session.recipe(),
                                             prefix_source.recipe, session.data().train->size());
    const train::CheckpointStore store(prefix_source.folder / "checkpoints");
    for (CheckpointInfo& one : store.list()) {
      if (one.step > 0 && one.step <= std::min(common, last)) {
        candidates.push_back({prefix_source.folder, std::move(one)});
      }
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.checkpoint.step > b.checkpoint.step;
  });
  return candidates;
}

// Whether an independent training would have the same counters.
bool is_undisturbed(const std::map<std::string, std::string>& trainer,
                    const train::Progress& progress) {
  // Schedules were compared by step, and skipped updates shift them.
  const bool has_held =
      train::read_integer(trainer, "held.samples") + train::read_integer(trainer, "held.pending") >
      0;
  return !has_held && progress.splits == 1 && progress.skipped_samples == 0;
}

void copy_log(const Candidate& from, const train::Progress& progress, const fs::path& log) {
  const auto records = track::read_log(from.run / kLog).current();
  std::error_code ignored;
  fs::remove(log, ignored);
  track::LogWriter writer(log, 0, {{"version", GALLOP_VERSION}});
  for (const track::Record& record : records) {
    const bool is_evaluation = record.kind == "evaluation";
    const int64_t last = is_evaluation ? progress.evaluated_step : progress.step;
    if ((is_evaluation || record.kind == "step") && record.step <= last) writer.append(record);
  }
  writer.append({.step = progress.step,
                 .kind = "note",
                 .texts = {{"text", fmt::format("the steps up to here are those of {}",
                                                from.run.filename().string())}}});
}

// False if the checkpoint is unusable; an earlier one may be usable.
bool begin_with(const Candidate& candidate, const fs::path& folder,
                train::CheckpointStore& checkpoints) {
  const train::CheckpointStore store(candidate.run / "checkpoints");
  const auto trainer = store.read_trainer(candidate.checkpoint);
  data::LoaderState loader;
  const auto progress = train::Progress::from_map(trainer, loader);
  if (!is_undisturbed(trainer, progress)) return false;
  std::optional<CheckpointInfo> best;
  const bool is_best = progress.best_step == candidate.checkpoint.step;
  if (progress.best_step >= 0 && !is_best) {
    best = store.of_step(progress.best_step);
    if (!best) return false;
  }
  write_file_atomically(folder / kSharing, "");
  copy_log(candidate, progress, folder / kLog);
  if (best) checkpoints.take_over(*best, true);
  checkpoints.take_over(candidate.checkpoint, is_best);
  const nlohmann::ordered_json note{{"run", candidate.run.filename().string()},
                                    {"step", candidate.checkpoint.step}};
  write_file_atomically(folder / kShared, note.dump() + "\n");
  fs::remove(folder / kSharing);
  sync_folder(folder);
  return true;
}

}  // namespace

std::vector<PrefixSource> find_prefix_sources(const Registries& registries, const fs::path& runs,
                                              const std::string& name, ResolvedRecipe& resolved) {
  std::vector<PrefixSource> prefix_sources;
  if (resolved.is_auto("optimizer", "lr") || resolved.is_auto("data", "batch_size"))
    return prefix_sources;
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(runs, error)) {
    if (entry.path().filename() != name) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    auto recipe = recipe_of(registries, folder);
    if (!recipe) continue;
    ResolvedRecipe own = settled(resolved, *recipe);
    if (!shares_prefix(own.recipe, *recipe)) continue;
    resolved = std::move(own);
    prefix_sources.push_back({folder, std::move(*recipe)});
  }
  return prefix_sources;
}

std::optional<SharedPrefix> SharedPrefix::read(const fs::path& folder) {
  if (!fs::exists(folder / kShared)) return {};
  const fs::path file = folder / kShared;
  try {
    const auto json = nlohmann::json::parse(read_file(file, kLargestNote));
    SharedPrefix shared;
    shared.run = json.at("run");
    shared.step = json.at("step");
    return shared;
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: not a record of shared steps", file.string()));
  }
}

std::optional<SharedPrefix> share_prefix(Session& session, const track::RunInfo& info,
                                         const std::vector<PrefixSource>& prefix_sources,
                                         const fs::path& folder,
                                         train::CheckpointStore& checkpoints, int64_t last) {
  if (!session.device().is_cpu()) return {};
  for (const Candidate& one : candidates_of(session, info, prefix_sources, last)) {
    try {
      if (begin_with(one, folder, checkpoints)) return SharedPrefix::read(folder);
    } catch (const DataError& error) {
      print_error("gallop: {}; the steps shared with {} are trained again\n",
                  printable(error.what()), printable(one.run.string()));
      remove_half_shared(folder);
    }
  }
  return {};
}

bool is_half_shared(const fs::path& folder) { return fs::exists(folder / kSharing); }

void remove_half_shared(const fs::path& folder) {
  if (!is_half_shared(folder)) return;
  for (const char* const part : {kShared, kLog, "checkpoints", kSharing}) {
    fs::remove_all(folder / part);
  }
}

void note_foreign_steps(const fs::path& folder, const std::string& why) {
  write_file_atomically(folder / kForeign, why + "\n");
}

std::string foreign_steps(const fs::path& folder) {
  if (!fs::exists(folder / kForeign)) return {};
  std::string why = read_file(folder / kForeign);
  why.erase(why.find_last_not_of('\n') + 1);
  return why;
}

void print_earlier(const fs::path& folder, int64_t step) {
  if (const auto shared = SharedPrefix::read(folder)) {
    fmt::print(
        "{}\n",
        nlohmann::ordered_json{{"event", "shared"}, {"run", shared->run}, {"step", shared->step}}
            .dump());
  }
  for (const track::Record& record : track::read_log(folder / kLog).current()) {
    if (record.kind != "evaluation" || record.step > step) continue;
    nlohmann::ordered_json object{{"event", "earlier"}, {"step", record.step}};
    for (const auto& [name, value] : record.values) object[name] = value;
    fmt::print("{}\n", json_line(object));
  }
  std::fflush(stdout);
}

}  // namespace gallop::app

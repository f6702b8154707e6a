#include "gallop/app/tune/new_study.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/app/print.h"
#include "gallop/app/tune/recipe_metrics.h"
#include "gallop/app/tune/worker.h"
#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/input.h"
#include "gallop/base/left_over.h"
#include "gallop/base/text.h"
#include "gallop/tune/storage/memory.h"
#include "gallop/tune/tuner.h"
#include "gallop/tune/warm_start.h"

namespace gallop::app {

namespace {

using tune::StudyPlace;

constexpr int64_t kLargestSweep = 1 << 20;
constexpr double kMakingSeconds = 60;
constexpr auto kMakingPause = std::chrono::milliseconds(50);

// What differs between two studies besides the number of trials; empty if nothing does.
std::string difference(tune::StudySettings before, const tune::StudySettings& now) {
  before.trials = now.trials;
  if (tune::to_json(before) == tune::to_json(now)) return {};
  if (before.space.to_json() != now.space.to_json()) return "parameters or constraints";
  if (before.sampler != now.sampler) return "the sampler";
  if (before.pruner != now.pruner) return "the pruner";
  if (before.run != now.run) return "what a trial runs";
  if (before.seed != now.seed) return "the seed";
  if (before.heartbeat_seconds != now.heartbeat_seconds || before.attempts != now.attempts ||
      before.failures != now.failures) {
    return "heartbeat, attempts or failures";
  }
  return "the metrics or limits";
}

// Locks the creation of a study, so that concurrent processes do not create it twice or
// incompletely.
FileLock take_making_lock(const fs::path& folder) {
  const double until = monotonic_seconds() + kMakingSeconds;
  while (monotonic_seconds() < until) {
    if (auto lock = FileLock::try_lock(folder / "making.lock", host_name())) {
      return std::move(*lock);
    }
    std::this_thread::sleep_for(kMakingPause);
  }
  throw DeviceError(
      fmt::format("{}: another process has been creating this study for more than {:.0f} s",
                  folder.string(), kMakingSeconds));
}

// The sweep's start points that no trial has tried.
std::vector<tune::Point> untried(const std::vector<tune::Point>& start, const tune::Study& study) {
  std::vector<tune::Point> points = start;
  std::erase_if(points, [&](const tune::Point& point) {
    const auto& trials = study.trials();
    return std::any_of(trials.begin(), trials.end(), [&](const tune::Trial& trial) {
      return tune::is_same_point(trial.point, point);
    });
  });
  return points;
}

void go_on(const tune::TuneRegistries& registries, const StudyPlace& place, tune::StudyStore& store,
           const NewStudy& wanted, const tune::Sweep& sweep) {
  const tune::Study study = place.read();
  require_same(place, study.settings(), sweep.settings);
  if (!wanted.earlier.empty() && study.taken_over() == 0) {
    throw UsageError(
        fmt::format("--warm-start: {} already exists, and only a new study can take over trials; "
                    "omit it, or choose another --name",
                    place.folder.string()));
  }
  const auto start = untried(sweep.start, study);
  const auto trials = static_cast<int64_t>(study.trials().size() + start.size());
  const int64_t wanted_trials = std::max(sweep.settings.trials + study.taken_over(), trials);
  const int64_t more = wanted_trials - study.wanted_trials();
  if (more <= 0 && start.empty()) return;
  tune::Tuner tuner(store.open(place.name), registries);
  tuner.enqueue(start);
  if (more > 0) tuner.resume(more);
}

// The first events of a study: the trials taken over from an earlier study, with a message that
// names it, and the start points.
std::vector<tune::Event> first_events(const tune::TuneRegistries& registries,
                                      const tune::Sweep& sweep, const std::string& name,
                                      const std::optional<tune::Study>& earlier) {
  auto storage = std::make_unique<tune::MemoryStorage>(sweep.settings);
  const tune::MemoryStorage& kept = *storage;
  tune::Tuner tuner(std::move(storage), registries);
  if (earlier) {
    const tune::WarmStart taken = tuner.take_over(*earlier);
    print_error("gallop: {} trials of {} taken over{}\n", taken.taken, name,
                taken.outside > 0 ? fmt::format(", {} are outside this space", taken.outside) : "");
  }
  tuner.enqueue(sweep.start);
  return kept.events();
}

void check_database(const std::string& store) {
  if (tune::is_database(store)) return;
  throw UsageError(
      "--store: expected postgresql://USER@HOST/DATABASE; without --store a study is "
      "stored in a file");
}

// An existing study cannot move to another store.
void check_store(const StudyPlace& place, const std::string& store) {
  if (store.empty() || (place.is_in_database() && store == place.store)) return;
  throw UsageError(fmt::format(
      "{} is stored elsewhere, {}; omit --store, or choose another --name", place.folder.string(),
      place.is_in_database() ? "at the address in its file 'store'" : "in its file study.db"));
}

}  // namespace

std::string read_sweep(const Registries& registries, const NewStudy& wanted, tune::Sweep& sweep) {
  const fs::path file(wanted.sweep_file);
  if (!fs::exists(file)) {
    throw UsageError(fmt::format("there is no sweep '{}'", printable(wanted.sweep_file)));
  }
  const std::string text = read_input(file, kLargestSweep);
  sweep = tune::parse_sweep(registries.tune, text, wanted.sweep_file, file.stem().string());
  const tune::RunSpec spec = tune::parse_run_spec(sweep.settings.run);
  const RecipeMetrics reported(registries, sweep.settings, spec);
  sweep = tune::parse_sweep(
      registries.tune, text, wanted.sweep_file, file.stem().string(),
      {.metric = sweep.settings.objectives.empty() ? reported.deciding() : std::string(),
       .is_maximized = [&](const auto& metric) { return reported.is_higher_better(metric); }});
  if (!wanted.name.empty()) sweep.settings.name = wanted.name;
  if (!tune::is_study_name(sweep.settings.name) && wanted.name.empty()) {
    throw UsageError(
        fmt::format("'{}' is not a valid study name; choose one with --name, of letters, "
                    "digits, '.', '_' and '-'",
                    printable(sweep.settings.name)));
  }
  tune::check_study_name(sweep.settings.name);
  check_study(registries, sweep.settings, reported);
  sweep.settings.pruner = completed_pruner(registries, sweep.settings, spec);
  return text;
}

StudyPlace make_study(const tune::TuneRegistries& registries, const NewStudy& wanted,
                      const tune::Sweep& sweep, const std::string& text) {
  const fs::path folder = wanted.studies / sweep.settings.name;
  std::optional<tune::Study> earlier;
  if (!wanted.earlier.empty() && !tune::is_study(folder)) {
    earlier = tune::find_study(wanted.studies, wanted.earlier).read();
  }
  make_folders(folder);
  const FileLock lock = take_making_lock(folder);
  remove_left_files(folder);
  const bool is_there = tune::is_study(folder);
  StudyPlace place = StudyPlace::at(folder);
  if (is_there) {
    check_store(place, wanted.store);
  } else if (!wanted.store.empty()) {
    check_database(wanted.store);
    place.store = wanted.store;
  }
  const auto store = place.open_store();
  if (is_there && place.is_led()) {
    if (!wanted.may_be_led) go_on(registries, place, *store, wanted, sweep);
    return place;
  }
  const auto names =
      is_there || place.is_in_database() ? store->names() : std::vector<std::string>();
  if (std::find(names.begin(), names.end(), place.name) != names.end()) {
    go_on(registries, place, *store, wanted, sweep);
    if (!is_there) StudyPlace::set_store(folder, wanted.store);
    return place;
  }
  write_file_atomically(folder / "sweep.yaml", text);
  if (!wanted.earlier.empty() && !earlier) {
    earlier = tune::find_study(wanted.studies, wanted.earlier).read();
  }
  const auto events = first_events(registries, sweep, wanted.earlier, earlier);
  if (!is_there) StudyPlace::set_store(folder, wanted.store);
  try {
    store->create(sweep.settings, events);
  } catch (const tune::StudyExists&) {
    // A process with another folder has created it in the database in the meantime.
    go_on(registries, place, *store, wanted, sweep);
  }
  return place;
}

void require_same(const StudyPlace& place, const tune::StudySettings& there,
                  const tune::StudySettings& wanted) {
  const std::string changed = difference(there, wanted);
  if (changed.empty()) return;
  const std::string where = tune::is_study(place.folder)
                                ? place.folder.string()
                                : fmt::format("'{}' in the database", place.name);
  throw UsageError(
      fmt::format("study {} already exists and differs in {}; choose another --name, or delete it",
                  where, changed));
}

}  // namespace gallop::app

#include "gallop/app/tune/study_place.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "gallop/app/tune/worker.h"
#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"
#include "gallop/tune/remote/remote_broker.h"
#include "gallop/tune/storage/sqlite.h"

namespace gallop::app {

namespace {

constexpr int64_t kLargestSweep = 1 << 20;
constexpr const char* kDatabase = "study.db";
constexpr const char* kStore = "store";
constexpr double kAnswerSeconds = 10;
constexpr double kMakingSeconds = 60;
constexpr auto kMakingPause = std::chrono::milliseconds(50);

StudyPlace place_at(const fs::path& folder) {
  StudyPlace place{.folder = folder,
                   .name = fs::absolute(folder).lexically_normal().filename().string(),
                   .store = (folder / kDatabase).string()};
  if (fs::exists(folder / kStore)) place.store = read_file(folder / kStore, kLargestSweep);
  return place;
}

bool is_study(const fs::path& folder) {
  return fs::exists(folder / kDatabase) || fs::exists(folder / kStore);
}

// What differs between two studies, besides the number of trials; empty for nothing.
std::string difference(tune::StudySettings before, const tune::StudySettings& now) {
  before.trials = now.trials;
  if (tune::to_json(before) == tune::to_json(now)) return {};
  if (before.space.to_json() != now.space.to_json()) return "parameters or constraints";
  if (before.sampler != now.sampler) return "the sampler";
  if (before.pruner != now.pruner) return "the pruner";
  if (before.run != now.run) return "what a trial runs";
  if (before.seed != now.seed) return "the seed";
  return "the metrics or limits";
}

// Two processes that make a study at once would make it twice, or one go on with half of it.
FileLock take_making_lock(const fs::path& folder) {
  const double until = monotonic_seconds() + kMakingSeconds;
  while (monotonic_seconds() < until) {
    if (auto lock = FileLock::try_lock(folder / "making.lock", host_name())) {
      return std::move(*lock);
    }
    std::this_thread::sleep_for(kMakingPause);
  }
  throw DeviceError(fmt::format("{}: another process makes this study, for more than {:.0f} s",
                                folder.string(), kMakingSeconds));
}

void go_on(const StudyPlace& place, tune::StudyStore& store, const tune::Sweep& sweep) {
  const tune::Study study = place.read();
  require_same(place, study.settings(), sweep.settings);
  const int64_t more = sweep.settings.trials - study.wanted_trials();
  if (more > 0) tune::Tuner(store.open(place.name)).resume(more);
}

}  // namespace

fs::path StudyPlace::address_file() const { return tune::file_beside(store, name, "address"); }

bool StudyPlace::is_in_database() const { return fs::exists(folder / kStore); }

tune::Study StudyPlace::read() const {
  const std::string leader = leader_elsewhere();
  if (leader.empty()) return open_store()->read(name);
  try {
    return tune::RemoteBroker([this] { return tune::read_address(address_file()); }, kAnswerSeconds)
        .study();
  } catch (const DeviceError& error) {
    throw DeviceError(
        fmt::format("{} leads '{}': {}. Ask there, or let it listen at an address that this host "
                    "reaches (--listen)",
                    printable(leader), name, error.what()));
  }
}

// "process 12 on host" where that is not this host. Its file is not to be touched then: a
// write-ahead log of SQLite is for the processes of one host.
std::string StudyPlace::leader_elsewhere() const {
  if (!is_led()) return {};
  std::string owner = FileLock::owner_of(tune::file_beside(store, name, "lock"));
  return owner.empty() || owner.ends_with(" on " + host_name()) ? std::string() : owner;
}

std::unique_ptr<tune::Broker> StudyPlace::open_broker() const {
  std::unique_ptr<tune::Storage> storage;
  try {
    storage = open_store()->open(name);
  } catch (const UsageError&) {
    // Another process leads it.
    if (is_in_database() || !fs::exists(address_file())) throw;
    return open_remote(kAnswerSeconds);
  }
  return std::make_unique<tune::Tuner>(std::move(storage));
}

std::unique_ptr<tune::Broker> StudyPlace::open_remote(double patience_seconds,
                                                      const std::function<void()>& looking) const {
  return std::make_unique<tune::RemoteBroker>(
      [file = address_file(), looking] {
        if (looking) looking();
        return tune::read_address(file);
      },
      patience_seconds);
}

bool StudyPlace::is_led() const {
  const fs::path lock = tune::file_beside(store, name, "lock");
  return !is_in_database() && fs::exists(lock) && !FileLock::try_lock(lock, "");
}

std::unique_ptr<tune::Storage> StudyPlace::open_unless_led() const {
  try {
    return open_store()->open(name);
  } catch (const UsageError&) {
    return nullptr;
  }
}

void WhichStudy::add_to(CLI::App& parser) {
  parser.add_option("STUDY", study, "its name or folder")->required();
  parser.add_option("--studies", studies, "folder of the studies");
}

StudyPlace WhichStudy::find() const { return find_study(studies, study); }

std::string read_sweep(const NewStudy& wanted, tune::Sweep& sweep) {
  const fs::path file(wanted.sweep_file);
  if (!fs::exists(file)) {
    throw UsageError(fmt::format("there is no sweep '{}'", printable(wanted.sweep_file)));
  }
  std::string text = read_file(file, kLargestSweep);
  sweep = tune::parse_sweep(text, wanted.sweep_file, file.stem().string());
  if (!wanted.name.empty()) sweep.settings.name = wanted.name;
  tune::check_study_name(sweep.settings.name);
  check_study(sweep.settings);
  return text;
}

StudyPlace make_study(const NewStudy& wanted, tune::Sweep& sweep) {
  const std::string text = read_sweep(wanted, sweep);
  const fs::path folder = wanted.studies / sweep.settings.name;
  make_folders(folder);
  const FileLock lock = take_making_lock(folder);
  const bool is_there = is_study(folder);
  if (!is_there && !wanted.store.empty()) write_file_atomically(folder / kStore, wanted.store);
  StudyPlace place = place_at(folder);
  const auto store = place.open_store();
  if (is_there && place.is_led()) {
    if (!wanted.may_be_led) go_on(place, *store, sweep);
    return place;
  }
  const auto names =
      is_there || place.is_in_database() ? store->names() : std::vector<std::string>();
  if (std::find(names.begin(), names.end(), place.name) != names.end()) {
    go_on(place, *store, sweep);
    return place;
  }
  write_file_atomically(folder / "sweep.yaml", text);
  std::optional<tune::Study> earlier;
  if (!wanted.earlier.empty()) earlier = find_study(wanted.studies, wanted.earlier).read();
  store->create(sweep.settings);
  tune::Tuner tuner(store->open(place.name));
  if (earlier) {
    const tune::WarmStart taken = tuner.take_over(*earlier);
    fmt::print(stderr, "gallop: {} trials of {} taken over{}\n", taken.taken, wanted.earlier,
               taken.outside > 0 ? fmt::format(", {} are outside this space", taken.outside) : "");
  }
  if (!sweep.start.empty()) tuner.enqueue(sweep.start);
  return place;
}

void require_same(const StudyPlace& place, const tune::StudySettings& there,
                  const tune::StudySettings& wanted) {
  const std::string changed = difference(there, wanted);
  if (changed.empty()) return;
  throw UsageError(fmt::format(
      "there is a study {} already, which differs in {}; take another --name, or remove it",
      place.folder.string(), changed));
}

StudyPlace find_study(const fs::path& studies, const std::string& name) {
  if (is_study(name)) return place_at(name);
  if (is_study(studies / name)) return place_at(studies / name);
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(studies, error)) {
    if (is_study(entry.path())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  throw UsageError(fmt::format("there is no study '{}'{}", printable(name),
                               names.empty() ? fmt::format("; {} has none", studies.string())
                                             : "; there are " + join_names(names, "and")));
}

}  // namespace gallop::app

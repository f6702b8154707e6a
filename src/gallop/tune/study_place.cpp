#include "gallop/tune/study_place.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"
#include "gallop/tune/storage/sqlite.h"
#include "gallop/tune/tuner.h"

namespace gallop::tune {

namespace {

constexpr int64_t kLongestStore = 1 << 20;
constexpr const char* kDatabase = "study.db";
constexpr const char* kStore = "store";
constexpr double kAnswerSeconds = 10;
constexpr double kFirstKnockSeconds = 0.25;
constexpr auto kPause = std::chrono::milliseconds(20);

}  // namespace

StudyPlace StudyPlace::at(const fs::path& folder) {
  StudyPlace place;
  place.folder = folder;
  // Shell completion of folder names appends a slash.
  const fs::path whole = fs::absolute(folder).lexically_normal();
  place.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  place.store = (folder / kDatabase).string();
  std::error_code error;
  if (fs::exists(folder / kStore, error)) {
    place.store = read_file(folder / kStore, kLongestStore);
  }
  return place;
}

void StudyPlace::set_store(const fs::path& folder, const std::string& store) {
  // The address may contain a password.
  if (!store.empty()) write_file_atomically(folder / kStore, store, /*mode=*/0600);
}

fs::path StudyPlace::address_file() const { return file_beside(store, name, "address"); }

Study StudyPlace::read(double patience_seconds) const {
  const std::string leader = leader_elsewhere();
  if (leader.empty()) return tune::open_store(store, {.seconds = patience_seconds})->read(name);
  const double seconds = patience_seconds > 0 ? patience_seconds : kAnswerSeconds;
  try {
    return RemoteStudyClient([this] { return read_address(address_file()); }, {.seconds = seconds})
        .study();
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format(
        "{} leads '{}': {}. Run this command there, or start it with an address that this "
        "host can reach (--listen)",
        printable(leader), name, error.what()));
  }
}

// "process 12 on host" if another host leads the study. Its file must not be opened then: the
// write-ahead log of SQLite only supports the processes of one host.
std::string StudyPlace::leader_elsewhere() const {
  if (is_in_database()) return {};
  std::string owner = FileLock::owner_of(file_beside(store, name, "lock"));
  const bool is_elsewhere = !owner.empty() && !owner.ends_with(" on " + host_name());
  // The check takes the lock for a moment.
  return is_elsewhere && is_led() ? owner : std::string();
}

std::unique_ptr<StudyClient> StudyPlace::open_study_client(
    const TuneRegistries& registries, const std::function<bool()>& goes_on) const {
  const double until = monotonic_seconds() + kAnswerSeconds;
  for (double knock = kFirstKnockSeconds;; knock *= 2) {
    std::unique_ptr<Storage> storage;
    try {
      storage = open_store({.goes_on = goes_on})->open(name);
    } catch (const StudyIsLed& error) {
      if (monotonic_seconds() > until) {
        throw StudyUnreachable(fmt::format("{}, and does not answer", error.what()));
      }
    }
    if (storage != nullptr) return std::make_unique<Tuner>(std::move(storage), registries);
    // Its leader answers, or has only taken the lock for a moment like this process.
    if (is_answered(knock)) return open_remote({.seconds = kAnswerSeconds});
    std::this_thread::sleep_for(kPause);
  }
}

bool StudyPlace::is_answered(double patience_seconds) const {
  if (!fs::exists(address_file())) return false;
  try {
    open_remote({.seconds = patience_seconds});
    return true;
  } catch (const Error&) {
    // The address file of an earlier leader; the address may be another study's by now.
    return false;
  }
}

std::unique_ptr<StudyClient> StudyPlace::open_remote(const Patience& patience,
                                                     const std::function<void()>& looking) const {
  return std::make_unique<RemoteStudyClient>(
      [file = address_file(), looking] {
        if (looking) looking();
        return read_address(file);
      },
      patience);
}

bool StudyPlace::is_led() const {
  const fs::path lock = file_beside(store, name, "lock");
  return !is_in_database() && fs::exists(lock) && !FileLock::try_lock(lock, "");
}

std::unique_ptr<Storage> StudyPlace::open_unless_led() const {
  try {
    return open_store()->open(name);
  } catch (const UsageError&) {
    return nullptr;
  }
}

bool is_study(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kDatabase, error) || fs::exists(folder / kStore, error);
}

bool may_be_study(const fs::path& folder) {
  std::error_code error;
  return is_study(folder) ||
         (!fs::exists(folder / kDatabase, error) && error == std::errc::permission_denied);
}

std::vector<std::string> study_names(const fs::path& studies) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(studies, error)) {
    if (may_be_study(entry.path())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

StudyPlace find_study(const fs::path& studies, const std::string& name) {
  if (is_study(name)) return StudyPlace::at(name);
  if (is_study(studies / name)) return StudyPlace::at(studies / name);
  const auto names = study_names(studies);
  const std::string nearest = nearest_name(name, names);
  std::string instead = "; there are " + join_names(names, "and");
  if (names.empty()) {
    instead = fmt::format(" in {}, which has no studies; use --studies FOLDER for another folder",
                          printable(studies.string()));
  } else if (!nearest.empty()) {
    instead = ", did you mean '" + nearest + "'?";
  }
  throw UsageError(fmt::format("there is no study '{}'{}", printable(name), instead));
}

}  // namespace gallop::tune

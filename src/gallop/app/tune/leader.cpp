#include "gallop/app/tune/leader.h"

#include <sys/stat.h>

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/tune/locked_study_client.h"

namespace gallop::app {

namespace {

constexpr int kLookMilliseconds = 250;
// Waiting workers ask several times per second.
constexpr double kLeaveSeconds = 5;

// The inode number of a file; 0 if it does not exist.
uint64_t number_of(const fs::path& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

Leader::Leader(std::unique_ptr<tune::Storage> storage, const tune::TuneRegistries& registries,
               const tune::StudyPlace& place, const std::string& listen, double ends_at)
    : tuner_(std::move(storage), registries), ends_at_(ends_at) {
  if (place.is_in_database()) return;
  file_ = fs::absolute(place.store);
  file_number_ = number_of(file_);
  coordinator_.emplace(
      tuner_, tune::Coordinator::Options{.host = listen, .address_file = place.address_file()});
}

std::unique_ptr<tune::StudyClient> Leader::client() {
  return std::make_unique<tune::LockedStudyClient>(tuner_, mutex_);
}

void Leader::resume() {
  const std::lock_guard lock(mutex_);
  const tune::Study& study = tuner_.study();
  if (study.is_stopped() && !study.has_reached_targets()) tuner_.resume();
}

// Events written to a removed or moved file would be lost.
void Leader::check_file() const {
  if (file_.empty() || number_of(file_) == file_number_) return;
  throw DeviceError(
      fmt::format("{}: the study's file was removed, moved or replaced; the study cannot be stored",
                  printable(file_.string())));
}

void Leader::serve() {
  check_file();
  if (coordinator_) {
    coordinator_->wait(kLookMilliseconds);
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookMilliseconds));
  }
  const std::lock_guard lock(mutex_);
  if (coordinator_) {
    coordinator_->serve(0);
  } else {
    tuner_.refresh();
  }
  if (!tuner_.study().is_stopped() && monotonic_seconds() > ends_at_) {
    tuner_.stop("its time limit is reached");
  }
}

void Leader::show(const std::function<void(const tune::Study&)>& look) {
  const std::lock_guard lock(mutex_);
  look(tuner_.study());
}

bool Leader::has_running() {
  const std::lock_guard lock(mutex_);
  return coordinator_ && !tuner_.study().running().empty();
}

void Leader::take_leave() {
  if (!coordinator_) return;
  const double until = monotonic_seconds() + kLeaveSeconds;
  while (coordinator_->workers() > 0 && monotonic_seconds() < until) {
    coordinator_->wait(kLookMilliseconds);
    const std::lock_guard lock(mutex_);
    coordinator_->serve(0);
  }
}

}  // namespace gallop::app

#include "gallop/app/tune/leader.h"

#include <chrono>
#include <thread>
#include <utility>

#include "gallop/base/clock.h"
#include "gallop/tune/locked_broker.h"

namespace gallop::app {

namespace {

constexpr int kLookMilliseconds = 250;
// Workers that wait for a trial ask several times a second.
constexpr double kLeaveSeconds = 5;

}  // namespace

Leader::Leader(std::unique_ptr<tune::Storage> storage, const tune::StudyPlace& place,
               const std::string& listen, double ends_at)
    : tuner_(std::move(storage)), ends_at_(ends_at) {
  if (place.is_in_database()) return;
  coordinator_.emplace(
      tuner_, tune::Coordinator::Options{.host = listen, .address_file = place.address_file()});
}

std::unique_ptr<tune::Broker> Leader::broker() {
  return std::make_unique<tune::LockedBroker>(tuner_, mutex_);
}

void Leader::resume() {
  const std::lock_guard lock(mutex_);
  const tune::Study& study = tuner_.study();
  if (study.is_stopped() && !study.has_reached_targets()) tuner_.resume();
}

void Leader::serve() {
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
    tuner_.stop("its time is over");
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

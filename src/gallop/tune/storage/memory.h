#pragma once

#include <vector>

#include "gallop/tune/storage.h"
#include "gallop/tune/storage/heartbeats.h"

namespace gallop::tune {

/// An in-memory study; it lasts as long as this object.
class MemoryStorage final : public Storage {
 public:
  /// `events` are those of an earlier study with these settings.
  explicit MemoryStorage(StudySettings settings, std::vector<Event> events = {},
                         Heartbeats::Clock clock = monotonic_seconds)
      : settings_(std::move(settings)),
        events_(std::move(events)),
        heartbeats_(settings_.heartbeat_seconds, std::move(clock)) {}

  const StudySettings& settings() const override { return settings_; }
  void update(const Take& take, const Answer& answer) override;
  std::vector<Event> events(int64_t from, int64_t most) override;
  void heartbeat(const Attempt& attempt) override { heartbeats_.heartbeat(attempt); }
  std::vector<Attempt> silent(double seconds) override { return heartbeats_.silent(seconds); }

  const std::vector<Event>& events() const { return events_; }

 private:
  StudySettings settings_;
  std::vector<Event> events_;
  size_t taken_ = 0;
  Heartbeats heartbeats_;
};

}  // namespace gallop::tune

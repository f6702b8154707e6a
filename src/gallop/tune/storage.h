#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// Keeps the events of one study, in one order for all who write.
class Storage {
 public:
  virtual ~Storage() = default;

  /// What the study is, as it was created.
  virtual StudySettings settings() = 0;

  /// Hands `news` the events that came since the last call and appends what it returns, while
  /// nobody else can write; that is durable once update() returns. If it throws, nothing has been
  /// written, and it must be taken that `news` was not called. Throws DeviceError where the storage
  /// cannot be reached or written.
  using Answer = std::function<std::vector<Event>(const std::vector<Event>& news)>;
  virtual void update(const Answer& answer) = 0;

  /// A sign of life of whoever runs this attempt of a trial.
  virtual void beat(int64_t trial, int32_t attempt) = 0;
  /// Running trials without a sign of life for that long, by the storage's own clock.
  virtual std::vector<int64_t> silent_trials(double seconds) = 0;
};

}  // namespace gallop::tune

#pragma once

#include <functional>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// Stores the events of one study, in one order for all writers.
class Storage {
 public:
  virtual ~Storage() = default;

  /// The settings with which the study was created.
  virtual const StudySettings& settings() const = 0;

  /// Passes the events since the last call to `take`, each once, and appends the events that
  /// `answer` returns, atomically with respect to other processes. Once update() returns, they are
  /// durable, and `take` will not be called with them. If it throws, `take` gets them in the next
  /// call if they were written nevertheless. `answer` may be called again, after more events, if
  /// the storage had to be reconnected; its last answer counts. Throws DeviceError if the storage
  /// cannot be reached or written, DataError if it is damaged, and the errors of `answer`.
  using Take = std::function<void(const Event&)>;
  using Answer = std::function<std::vector<Event>()>;
  virtual void update(const Take& take, const Answer& answer) = 0;

  /// The events from this number on, at most `most`, of all writers. Throws as update() does.
  virtual std::vector<Event> events(int64_t from, int64_t most) = 0;

  /// A heartbeat of the worker that runs this attempt; its start and its reports are heartbeats as
  /// well.
  virtual void heartbeat(const Attempt& attempt) = 0;
  /// The running attempts without a heartbeat for that long, by the storage's own clock.
  virtual std::vector<Attempt> silent(double seconds) = 0;
};

}  // namespace gallop::tune

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// Persists the events of one study, in one order for all writers.
class Storage {
 public:
  virtual ~Storage() = default;

  /// The settings with which the study was created.
  virtual const StudySettings& settings() const = 0;

  /// Passes the events since the last call to `take`, each once, and appends the events that
  /// `answer` returns, atomically with respect to other processes. Once update() returns, they are
  /// durable, and `take` is not called with them. If it throws although they were written, `take`
  /// gets them in the next call. `answer` may be called again, after more events, if the storage
  /// had to be reconnected; its last result is used. Throws DeviceError if the storage cannot be
  /// reached or written, DataError if it is damaged, and the errors of `answer`.
  using Take = std::function<void(const Event&)>;
  using Answer = std::function<std::vector<Event>()>;
  virtual void update(const Take& take, const Answer& answer) = 0;

  /// At most `most` events of all writers from index `from` on. Throws as update() does.
  virtual std::vector<Event> events(int64_t from, int64_t most) = 0;

  /// Records a heartbeat of the worker that runs this attempt. Its start and its reports are
  /// heartbeats as well.
  virtual void heartbeat(const Attempt& attempt) = 0;
  /// The running attempts without a heartbeat for this long, by the storage's own clock.
  virtual std::vector<Attempt> silent(double seconds) = 0;
  /// Makes sure that all results are on the disk if the last time was over a second ago. Called at
  /// least once per second while a study runs.
  virtual void flush() {}
};

/// A study in memory, which lasts as long as this object.
std::unique_ptr<Storage> memory_storage(StudySettings settings);

}  // namespace gallop::tune

#pragma once

#include <functional>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// Keeps the events of one study, in one order for all who write.
class Storage {
 public:
  virtual ~Storage() = default;

  /// What the study is, as it was created.
  virtual const StudySettings& settings() const = 0;

  /// Hands the events that came since the last call to `take`, each once, and appends what `answer`
  /// returns, while no other process can write. Once update() returns, that is kept whatever
  /// happens to this process, and `take` will not see it. Where it throws, `take` sees it in the
  /// next call if it was written all the same. `answer` may be called again, after more events,
  /// where the storage had to be reached again; its last answer counts. Throws DeviceError where
  /// the storage cannot be reached or written, DataError where it is damaged, and what `answer`
  /// throws.
  using Take = std::function<void(const Event&)>;
  using Answer = std::function<std::vector<Event>()>;
  virtual void update(const Take& take, const Answer& answer) = 0;

  /// Its events from this number on, at most so many, whoever wrote them. Throws as update() does.
  virtual std::vector<Event> events(int64_t from, int64_t most) = 0;

  /// A sign of life of whoever runs this attempt; its start and its reports are signs as well.
  virtual void heartbeat(const Attempt& attempt) = 0;
  /// What runs without a sign of life for that long, by the storage's own clock.
  virtual std::vector<Attempt> silent(double seconds) = 0;
};

}  // namespace gallop::tune

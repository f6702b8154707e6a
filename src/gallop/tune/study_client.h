#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// The reply to a worker's request for a trial.
struct Assignment {
  enum class Kind : uint8_t {
    kTrial,
    kWait,  ///< Ask again later: the next trial depends on a running one.
    kDone,  ///< The study needs no more trials.
  };
  Kind kind = Kind::kDone;
  Trial trial{};                ///< Its number, attempt, point, last_step, and reports so far.
  std::string parent_folder{};  ///< The run folder of the trial from which it starts; empty for
                                ///< none.
  std::string reason{};         ///< Why the study was stopped, if given.
};

/// The last `most` bytes of a message, its most informative part; "..." marks truncation.
inline std::string shortened(const std::string& message, size_t most) {
  return message.size() <= most ? message : "..." + message.substr(message.size() - most);
}

/// The result of a trial, reported by its worker. Values are metrics, not losses.
struct Outcome {
  TrialState state = TrialState::kComplete;  ///< kComplete, kPruned or kFailed.
  std::vector<double> values{};              ///< One per objective, of a complete trial.
  std::vector<double> limited{};             ///< One per limit.
  std::string message{};
};

enum class Verdict : uint8_t {
  kGoOn,
  kPrune,    ///< End at a step boundary, keep the checkpoint, and report that it was pruned.
  kAbandon,  ///< The trial was reassigned: end without a report.
};

/// A request that controls a study as a whole.
struct Control {
  enum class Kind : uint8_t {
    kStop,    ///< No further trial is started; running ones continue.
    kResume,  ///< Trials are started again, up to `wanted` in all if that is more than before.
    kRetry,   ///< Failed trials are queued again.
  };
  Kind kind = Kind::kStop;
  int64_t wanted = 0;
  std::string reason{};  ///< For a stop.
};

/// Assigns trials to workers and receives their results. A worker must send a heartbeat for its
/// trial at least once per interval. Calls throw DeviceError if the study cannot be reached.
class StudyClient {
 public:
  virtual ~StudyClient() = default;

  virtual const StudySettings& settings() const = 0;
  /// `worker` must be a unique name. A worker has one trial at a time: if it asks again, it gets
  /// the same one, since the first reply may have been lost.
  virtual Assignment ask(const std::string& worker) = 0;
  /// Records the run folder of a trial, from which another worker can resume it.
  virtual void set_run_folder(const Trial& trial, const std::string& folder) = 0;
  /// Records that the trial's first training steps are those of another trial.
  virtual void share(const Trial& trial, int64_t other, int64_t steps) = 0;
  /// Reports an intermediate value. A trial is also pruned at its last step.
  virtual Verdict report(const Trial& trial, int64_t step, double value) = 0;
  virtual Verdict heartbeat(const Trial& trial) = 0;
  /// Reports the result of a trial. False, without effect, if the trial was reassigned.
  virtual bool tell(const Trial& trial, const Outcome& outcome) = 0;
  /// Releases an unfinished trial because its worker ends; it is queued again.
  virtual void release(const Trial& trial) = 0;
  virtual void control(const Control& control) = 0;
};

}  // namespace gallop::tune

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// What a worker is told that asks for a trial.
struct Assignment {
  enum class Kind : uint8_t {
    kTrial,
    kWait,  ///< Ask again later: a trial that runs decides what comes next.
    kDone,  ///< The study needs no more.
  };
  Kind kind = Kind::kDone;
  Trial trial{};                ///< Its number, attempt, point, last_step, and reports so far.
  std::string parent_folder{};  ///< The run of the trial from which it begins; empty for none.
  std::string reason{};         ///< Why the study was stopped, where it was and that was said.
};

/// The end of a message, which says most: no more than so many bytes, and "..." where it was
/// longer.
inline std::string shortened(const std::string& message, size_t most) {
  return message.size() <= most ? message : "..." + message.substr(message.size() - most);
}

/// How a trial ended, as its worker tells. Values are metrics, as the objectives name them.
struct Outcome {
  TrialState state = TrialState::kComplete;  ///< kComplete, kPruned or kFailed.
  std::vector<double> values{};              ///< One for each objective, of a complete trial.
  std::vector<double> limited{};             ///< One for each limit.
  std::string message{};
};

enum class Verdict : uint8_t {
  kGoOn,
  kPrune,    ///< End at a step boundary, keep the checkpoint, and tell that it was pruned.
  kAbandon,  ///< The trial is no longer this worker's: end, and tell nothing.
};

/// A request to a study other than for trials.
struct Control {
  enum class Kind : uint8_t {
    kStop,    ///< No trial is started any more; those that run go on.
    kResume,  ///< They are started again, up to `wanted` in all where that is more than before.
    kRetry,   ///< Those that failed wait to be started again.
  };
  Kind kind = Kind::kStop;
  int64_t wanted = 0;
  std::string reason{};  ///< Of a stop.
};

/// Hands out trials and takes what came of them. Whoever holds a trial gives a sign of life at
/// least every heartbeat. Calls throw DeviceError where the study cannot be reached.
class StudyClient {
 public:
  virtual ~StudyClient() = default;

  virtual const StudySettings& settings() const = 0;
  /// `worker` is a name that no other has. A worker has one trial at a time: if it asks again, it
  /// is handed the one that it has, since the first answer may have been lost.
  virtual Assignment ask(const std::string& worker) = 0;
  /// Where the run of a trial lies, so that another worker can go on with it.
  virtual void set_run_folder(const Trial& trial, const std::string& folder) = 0;
  /// Its first steps, so many of training, are those of another trial.
  virtual void share(const Trial& trial, int64_t other, int64_t steps) = 0;
  /// A trial is also pruned that has come to its last step.
  virtual Verdict report(const Trial& trial, int64_t step, double value) = 0;
  virtual Verdict heartbeat(const Trial& trial) = 0;
  /// What is told of a trial that is no longer this worker's is dropped: false then.
  virtual bool tell(const Trial& trial, const Outcome& outcome) = 0;
  /// Gives a trial back that could not be finished, as its worker is to end; it waits for another.
  virtual void release(const Trial& trial) = 0;
  virtual void control(const Control& control) = 0;
};

}  // namespace gallop::tune

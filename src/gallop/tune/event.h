#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/tune/trial.h"

namespace gallop::tune {

/// One entry of a study's event log. A study's state is a fold over its events in order, so that a
/// storage only has to keep the events.
struct Event {
  enum class Kind : uint8_t {
    kQueued,    ///< A trial was created: number, bracket, point, parent, member, last_step.
    kStarted,   ///< It was assigned: attempt, text (the worker).
    kPlaced,    ///< Its run folder.
    kReported,  ///< step, losses[0].
    kFinished,  ///< state, losses, violations, text (the error).
    kRequeued,  ///< It was released, or is to run further, and waits again: last_step.
    kStopped,   ///< No further trial is started: text (why).
    kResumed,   ///< Trials are started again; `step` more than requested before, text (kTakenOver
                ///< or none).
    kVanished,  ///< Its worker's heartbeat expired, and it waits again: last_step.
    kShared,    ///< Its first steps, `step` of training, are those of the trial `parent`.
  };

  /// Text of a kResumed that counts the trials of an earlier study.
  static constexpr const char* kTakenOver = "taken over";

  Kind kind = Kind::kQueued;
  int64_t trial = -1;  ///< -1 for events of the whole study.
  double time = 0;     ///< Seconds since 1970.
  int32_t attempt = 0;
  int32_t bracket = 0;
  TrialState state = TrialState::kWaiting;
  int64_t step = 0;
  int64_t parent = -1;
  int32_t member = -1;
  int64_t last_step = 0;
  Point point{};
  std::vector<double> losses{};
  std::vector<double> violations{};
  std::string text{};
  std::string folder{};
};

/// Serializes an event as one line of JSON, without default values. Non-finite numbers such as NaN,
/// which JSON cannot represent, are strings.
std::string to_json(const Event& event);
/// The inverse. Throws DataError if the text is not an event.
Event parse_event(std::string_view text);

}  // namespace gallop::tune

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/tune/trial.h"

namespace gallop::tune {

/// One line of a study's history. All that is known of a study follows from its events in their
/// order, so that a storage need only keep them.
struct Event {
  enum class Kind : uint8_t {
    kQueued,    ///< A trial is there: number, bracket, point, parent, member, last_step.
    kStarted,   ///< It was handed out: attempt, text (the worker).
    kPlaced,    ///< Its run lies in this folder.
    kReported,  ///< step, losses[0].
    kFinished,  ///< state, losses, violations, text (what went wrong).
    kRequeued,  ///< It is waiting again, as it was given back or more is to be done: last_step.
    kStopped,   ///< No trial is to be started any more: text (why).
    kResumed,   ///< They are again; `step` more than were wanted, text (kTakenOver or none).
    kVanished,  ///< It is waiting again, as its worker gave no sign of life: last_step.
    kShared,    ///< Its first steps, `step` of training, are those of the trial `parent`.
  };

  /// Text of a kResumed that counts the trials of an earlier study.
  static constexpr const char* kTakenOver = "taken over";

  Kind kind = Kind::kQueued;
  int64_t trial = -1;  ///< -1 for what concerns the study.
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

/// One line of JSON, without what stands at its default. Numbers that JSON has not, as NaN, are
/// texts.
std::string to_json(const Event& event);
/// The inverse. Throws DataError where the text is no event.
Event parse_event(std::string_view text);

}  // namespace gallop::tune

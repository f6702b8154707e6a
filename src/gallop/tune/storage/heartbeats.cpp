#include "gallop/tune/storage/heartbeats.h"

namespace gallop::tune {

void Heartbeats::follow(const Event& event) {
  using Kind = Event::Kind;
  switch (event.kind) {
    case Kind::kStarted: signs_[event.trial] = {event.attempt, clock_()}; return;
    case Kind::kPlaced:
    case Kind::kShared:
    case Kind::kReported:
      if (const auto sign = signs_.find(event.trial); sign != signs_.end()) {
        sign->second.time = clock_();
      }
      return;
    case Kind::kFinished:
    case Kind::kRequeued:
    case Kind::kVanished: signs_.erase(event.trial); return;
    case Kind::kQueued:
    case Kind::kStopped:
    case Kind::kResumed: return;
  }
}

void Heartbeats::beat(const Attempt& attempt) {
  const auto sign = signs_.find(attempt.trial);
  if (sign != signs_.end() && sign->second.attempt == attempt.attempt) {
    sign->second.time = clock_();
  }
}

std::vector<Attempt> Heartbeats::silent(double seconds) const {
  const double now = clock_();
  std::vector<Attempt> silent;
  for (const auto& [trial, sign] : signs_) {
    if (now - sign.time > seconds) silent.push_back({trial, sign.attempt});
  }
  return silent;
}

}  // namespace gallop::tune

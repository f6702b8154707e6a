#include "gallop/tune/storage/heartbeats.h"

namespace gallop::tune {

double Heartbeats::now() {
  const double now = clock_(), pause = now - asked_at_;
  asked_at_ = now;
  if (pause > longest_pause_) {
    for (auto& [trial, sign] : signs_) sign.time += pause;
  }
  return now;
}

void Heartbeats::follow(const Event& event) {
  using Kind = Event::Kind;
  const double now = this->now();
  switch (event.kind) {
    case Kind::kStarted: signs_[event.trial] = {event.attempt, now}; return;
    case Kind::kPlaced:
    case Kind::kShared:
    case Kind::kReported:
      if (const auto sign = signs_.find(event.trial); sign != signs_.end()) {
        sign->second.time = now;
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

void Heartbeats::heartbeat(const Attempt& attempt) {
  const double now = this->now();
  const auto sign = signs_.find(attempt.trial);
  if (sign != signs_.end() && sign->second.attempt == attempt.attempt) {
    sign->second.time = now;
  }
}

std::vector<Attempt> Heartbeats::silent(double seconds) {
  const double now = this->now();
  std::vector<Attempt> silent;
  for (const auto& [trial, sign] : signs_) {
    if (now - sign.time > seconds) silent.push_back({trial, sign.attempt});
  }
  return silent;
}

}  // namespace gallop::tune

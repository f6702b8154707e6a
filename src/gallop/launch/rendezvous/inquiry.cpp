#include "gallop/launch/rendezvous/inquiry.h"

namespace gallop::launch {

void Inquiry::begin(std::optional<int> except, double now) {
  end();
  is_open_ = true;
  began_ = now;
  for (int candidate = 0; candidate < candidates_; ++candidate) {
    if (candidate == except) continue;
    const Link link = wire_.connect(candidate);
    asked_[link] = candidate;
    wire_.send(link, Ask{});
  }
}

void Inquiry::take(const Event& event) {
  const auto found = asked_.find(event.link);
  if (found == asked_.end()) return;
  if (event.message) {
    if (const auto* here = std::get_if<CoordinatorReply>(&*event.message)) {
      answers_.push_back({found->second, here->coordinator_phase});
    }
    wire_.close(event.link);
  }
  asked_.erase(found);
}

bool Inquiry::is_complete(double now) const {
  return is_open_ && (asked_.empty() || now - began_ >= kAskSeconds);
}

void Inquiry::end() {
  for (const auto& [link, candidate] : asked_) wire_.close(link);
  asked_.clear();
  answers_.clear();
  is_open_ = false;
}

}  // namespace gallop::launch

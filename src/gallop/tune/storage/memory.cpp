#include "gallop/tune/storage/memory.h"

namespace gallop::tune {

void MemoryStorage::update(const Take& take, const Answer& answer) {
  for (; taken_ < events_.size(); ++taken_) {
    heartbeats_.follow(events_[taken_]);
    take(events_[taken_]);
  }
  for (Event& event : answer()) {
    heartbeats_.follow(event);
    events_.push_back(std::move(event));
  }
  taken_ = events_.size();
}

}  // namespace gallop::tune

#include "gallop/tune/storage/memory.h"

#include <algorithm>

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

std::vector<Event> MemoryStorage::events(int64_t from, int64_t most) {
  const auto size = static_cast<int64_t>(events_.size());
  const int64_t begin = std::clamp<int64_t>(from, 0, size);
  return {events_.begin() + begin, events_.begin() + begin + std::min(most, size - begin)};
}

std::unique_ptr<Storage> memory_storage(StudySettings settings) {
  return std::make_unique<MemoryStorage>(std::move(settings));
}

}  // namespace gallop::tune

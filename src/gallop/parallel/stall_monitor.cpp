#include "gallop/parallel/stall_monitor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::parallel {

namespace {

constexpr double kReportInterval = 0.25, kLeastStill = 1, kSlowerThanOwn = 3;
constexpr const char *kBegunKey = "long-work/begun", *kEndedKey = "long-work/ended";

}  // namespace

StallMonitor::StallMonitor(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                           std::function<double()> clock)
    : store_(std::move(store)),
      rank_(rank),
      clock_(std::move(clock)),
      seen_(static_cast<size_t>(size)) {
  tell();
}

void StallMonitor::begin() {
  moved_at_ = clock_();
  longest_way_ = 0;
}

void StallMonitor::note_progress() {
  const double now = clock_();
  longest_way_ = std::max(longest_way_, now - moved_at_);
  moved_at_ = now;
  moves_ += 1;
  if (now - reported_at_ >= kReportInterval) tell();
}

void StallMonitor::enter_collective(int64_t call) {
  call_ = call;
  const double now = clock_();
  longest_way_ = std::max(longest_way_, now - moved_at_);
  moved_at_ = now;
  tell();
  for (Seen& one : seen_) one.at = now;
}

std::optional<StallMonitor::Still> StallMonitor::stalled_rank(int64_t call, double seconds) {
  const double most = std::max({seconds, kLeastStill, kSlowerThanOwn * longest_way_});
  std::optional<Still> stillest;
  for (int rank = 0; rank < static_cast<int>(seen_.size()); ++rank) {
    if (rank == rank_) continue;
    Seen& one = seen_[static_cast<size_t>(rank)];
    std::string place = store_->get_to_str(key_of(rank));
    const double now = clock_();
    if (parse_number<int64_t>(place.substr(0, place.find(' '))).value_or(0) >= call) continue;
    if (place != one.place) one = {.place = std::move(place), .at = now};
    const double still = now - one.at;
    if (still > most && (!stillest || still > stillest->seconds)) {
      stillest = Still{.rank = rank, .seconds = still};
    }
  }
  return stillest;
}

void StallMonitor::begin_long_work() {
  if (std::exchange(is_in_long_work_, true)) return;
  store_->add(kBegunKey, 1);
}

void StallMonitor::end_long_work() {
  if (!std::exchange(is_in_long_work_, false)) return;
  store_->add(kEndedKey, 1);
}

bool StallMonitor::sees_long_work() {
  const int64_t begun = store_->add(kBegunKey, 0), ended = store_->add(kEndedKey, 0);
  const bool changed = begun != begun_ || ended != ended_;
  begun_ = begun;
  ended_ = ended;
  return changed || begun > ended;
}

void StallMonitor::tell() {
  reported_at_ = clock_();
  store_->set(key_of(rank_), fmt::format("{} {}", call_, moves_));
}

std::string StallMonitor::key_of(int rank) const { return fmt::format("at/{}", rank); }

}  // namespace gallop::parallel

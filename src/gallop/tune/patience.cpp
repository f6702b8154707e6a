#include "gallop/tune/patience.h"

#include <algorithm>
#include <utility>

#include "gallop/base/clock.h"

namespace gallop::tune {

namespace {

constexpr double kLastSeconds = 2;

}  // namespace

Wait::Wait(Patience patience)
    : goes_on_(std::move(patience.goes_on)), until_(monotonic_seconds() + patience.seconds) {}

bool Wait::is_over() {
  const double now = monotonic_seconds();
  if (goes_on_ && !goes_on_()) {
    until_ = std::min(until_, now + kLastSeconds);
    goes_on_ = {};
  }
  return now >= until_;
}

double Wait::seconds_left() const { return std::max(0.0, until_ - monotonic_seconds()); }

}  // namespace gallop::tune

#include "gallop/launch/rendezvous/launcher.h"

#include <fmt/format.h>

namespace gallop::launch {

void Launcher::take(const Event& event, double now) {
  if (!event.incoming && member_.owns(event.link)) return member_.take(event, now);
  if (coordinator_ && (event.incoming || coordinator_->owns(event.link))) {
    coordinator_->take(event, now);
  } else if (event.message) {
    wire_.close(event.link);
  }
}

void Launcher::advance(double now, bool is_asked_to_stop) {
  if (coordinator_) {
    coordinator_->advance(now);
    if (coordinator_->is_over()) coordinator_.reset();
  }
  member_.advance(now, is_asked_to_stop);
  if (member_.found_no_coordinator()) serve(now);
}

void Launcher::serve(double now) {
  for (int candidate = 0; candidate < options_.candidates; ++candidate) {
    if (!wire_.listen(candidate)) continue;
    coordinator_.emplace(options_, candidate, member_.self(), wire_, work_);
    return member_.join(candidate, true, now);
  }
  member_.log_no_coordinator();
}

std::optional<Finish> Launcher::end() const { return member_.end(); }

}  // namespace gallop::launch

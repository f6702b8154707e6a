#include "gallop/ui/http/event_stream.h"

#include <algorithm>

namespace gallop::ui::http {

static constexpr size_t kMostBytes = size_t{1} << 20;

void EventStream::send(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;
  if (text_.size() + text.size() > kMostBytes) {
    is_closed_ = true;
  } else {
    text_ += text;
  }
  wake();
}

void EventStream::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  wake();
}

void EventStream::abandon() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  is_asleep_ = false;
  waiting_ = {};
}

bool EventStream::is_closed() const {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

void EventStream::serve(Waiting waiting) {
  const std::lock_guard lock(mutex_);
  waiting_ = std::move(waiting);
}

std::ptrdiff_t EventStream::take(char* out, size_t most) {
  const std::lock_guard lock(mutex_);
  if (text_.empty() && is_closed_) return -1;
  if (text_.empty()) {
    is_asleep_ = true;
    waiting_.sleep();
    return 0;
  }
  const size_t count = text_.copy(out, most);
  text_.erase(0, count);
  return static_cast<std::ptrdiff_t>(count);
}

void EventStream::wake() {
  if (!is_asleep_) return;
  is_asleep_ = false;
  waiting_.wake();
}

}  // namespace gallop::ui::http

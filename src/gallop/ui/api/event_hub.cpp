#include "gallop/ui/api/event_hub.h"

#include <chrono>
#include <exception>

#include <fmt/format.h>

#include "gallop/base/blocked_signals.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"

namespace gallop::ui::api {

namespace {

constexpr size_t kMostStreams = 16;
constexpr auto kBetweenLooks = std::chrono::seconds(1);
constexpr int kLooksBetweenComments = 10;

std::string event_of(const char* kind, const Json& data) {
  return fmt::format("event: {}\ndata: {}\n\n", kind,
                     data.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

EventHub::EventHub(Runs& runs, Sweeps& sweeps, Searches& searches)
    : runs_(runs), sweeps_(sweeps), searches_(searches) {
  const auto blocked = BlockedSignals::all();
  thread_ = std::thread([this] { work(); });
}

EventHub::~EventHub() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    for (const auto& stream : streams_) stream->close();
  }
  wake_.notify_all();
  thread_.join();
}

std::shared_ptr<http::EventStream> EventHub::listen() {
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const auto& stream) { return stream->is_closed(); });
  if (streams_.size() >= kMostStreams || is_closing_) return nullptr;
  const auto& stream = streams_.emplace_back(std::make_shared<http::EventStream>());
  // The reconnection delay of clients, in milliseconds.
  stream->send("retry: 1000\n\n");
  wake_.notify_all();
  return stream;
}

void EventHub::work() {
  std::unique_lock lock(mutex_);
  for (int looks = 0;; ++looks) {
    wake_.wait(lock, [this] { return is_closing_ || !streams_.empty(); });
    if (wake_.wait_for(lock, kBetweenLooks, [this] { return is_closing_; })) return;
    lock.unlock();
    const std::string events = look();
    lock.lock();
    if (!events.empty()) tell(events);
    if (looks % kLooksBetweenComments == 0) tell(":\n\n");
    std::erase_if(streams_, [](const auto& stream) { return stream->is_closed(); });
  }
}

// Temporarily unreadable folders are retried the next time.
std::string EventHub::look() {
  std::string events;
  try {
    const RunChanges runs = runs_.take_changes();
    if (!runs.is_empty()) {
      events += event_of("runs", {{"changed", runs.changed}, {"removed", runs.removed}});
    }
    const auto sweeps = sweeps_.take_changes();
    if (!sweeps.empty()) events += event_of("sweeps", {{"changed", sweeps}});
    const auto searches = searches_.take_changes();
    if (!searches.empty()) events += event_of("searches", {{"changed", searches}});
  } catch (const std::exception&) {
  }
  return events;
}

void EventHub::tell(std::string_view text) {
  for (const auto& stream : streams_) stream->send(text);
}

http::Response events(Context& context, const http::Request& request) {
  http::Response response{.type = "text/event-stream"};
  if (request.method == "HEAD") return response;
  response.events = context.events.listen();
  if (!response.events) throw Refusal(503, "too many open pages; close one");
  return response;
}

}  // namespace gallop::ui::api

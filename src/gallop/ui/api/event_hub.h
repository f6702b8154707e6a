#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "gallop/ui/http/event_stream.h"
#include "gallop/ui/runs.h"
#include "gallop/ui/searches.h"
#include "gallop/ui/sweeps.h"

namespace gallop::ui::api {

/// Notifies clients of changes on disk by server-sent events (HTML standard, section 9.2): `event:
/// runs`, `event: sweeps` and `event: searches` with the changed names, polled every second, and a
/// keep-alive comment every ten seconds.
class EventHub {
 public:
  EventHub(Runs& runs, Sweeps& sweeps, Searches& searches);
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  /// Adds a listener; null if there are already sixteen.
  std::shared_ptr<http::EventStream> listen();

 private:
  void work();
  std::string look();
  void tell(std::string_view text);

  Runs& runs_;
  Sweeps& sweeps_;
  Searches& searches_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_closing_ = false;
  std::vector<std::shared_ptr<http::EventStream>> streams_;
  std::thread thread_;
};

}  // namespace gallop::ui::api

#include "gallop/parallel/libtorch_system_calls.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string_view>

namespace gallop::parallel {

namespace {

using Clock = std::chrono::steady_clock;

// To handle an event takes at least two system calls.
constexpr auto kShorterThanHandling = std::chrono::microseconds(2);
constexpr int kYields = 2;

bool is_in_libtorch(const void* caller) {
  Dl_info info{};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path = info.dli_fname;
  return path.substr(path.rfind('/') + 1).starts_with("libtorch");
}

// Each thread that waits for events does so in one place.
bool is_loop_of_libtorch(const void* caller) {
  thread_local const void* last_caller = nullptr;
  thread_local bool is_libtorch = false;
  if (caller != last_caller) {
    is_libtorch = is_in_libtorch(caller);
    last_caller = caller;
  }
  return is_libtorch;
}

void give_core_away(int repetitions) {
  if (repetitions == 0) return;
  if (repetitions <= kYields) {
    sched_yield();
  } else {
    const timespec shortest{.tv_sec = 0, .tv_nsec = 1};  // About 50 us, the timer slack.
    nanosleep(&shortest, nullptr);
  }
}

}  // namespace

// The linker takes this file, and with it the functions below, from a static library.
void interpose_system_calls() {}

int UnhandledEvent::count(std::span<const epoll_event> events,
                          std::chrono::nanoseconds since_last) {
  void* const handler = events.size() == 1 ? events[0].data.ptr : nullptr;
  const bool is_repeated =
      handler != nullptr && handler == handler_ && since_last < kShorterThanHandling;
  repetitions_ = is_repeated ? repetitions_ + 1 : 0;
  handler_ = handler;
  return repetitions_;
}

}  // namespace gallop::parallel

// A program's own definition precedes that of the C library for shared libraries, too.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): reserved names
int getnameinfo(const sockaddr* address, socklen_t size, char* host, socklen_t host_size,
                char* service, socklen_t service_size, int flags) {
  static const auto of_system =
      reinterpret_cast<decltype(&getnameinfo)>(dlsym(RTLD_NEXT, "getnameinfo"));
  if (gallop::parallel::is_in_libtorch(__builtin_return_address(0))) flags |= NI_NUMERICHOST;
  return of_system(address, size, host, host_size, service, service_size, flags);
}

int epoll_wait(int poll, epoll_event* events, int most, int milliseconds) {
  static const auto of_system =
      reinterpret_cast<decltype(&epoll_wait)>(dlsym(RTLD_NEXT, "epoll_wait"));
  if (!gallop::parallel::is_loop_of_libtorch(__builtin_return_address(0))) {
    return of_system(poll, events, most, milliseconds);
  }
  thread_local gallop::parallel::UnhandledEvent unhandled;
  thread_local gallop::parallel::Clock::time_point last_return;
  const auto since_last = gallop::parallel::Clock::now() - last_return;
  const int count = of_system(poll, events, most, milliseconds);
  const std::span<const epoll_event> returned(events, static_cast<size_t>(std::max(count, 0)));
  gallop::parallel::give_core_away(unhandled.count(returned, since_last));
  last_return = gallop::parallel::Clock::now();
  return count;
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

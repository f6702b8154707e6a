#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <span>

namespace gallop::parallel {

/// A program that calls this anywhere interposes two system calls of LibTorch's collectives; all
/// other callers reach those of the system. Has no effect in a library that was opened by dlopen().
///
/// getnameinfo() returns numeric addresses: LibTorch looks up the host name of the peer of each
/// connection to a store, to log it. A DNS server that drops one of many queries delays the
/// connection by five seconds, and an unreachable one by more.
///
/// epoll_wait() gives the core away while it returns the same event again and again: a thread of
/// Gloo finds data for a connection that another thread has locked, and asks until it is unlocked.
/// Where processes have as many threads as cores, it takes the core that the other thread needs.
void interpose_system_calls();

/// Recognizes an event that epoll_wait() returns repeatedly because it is not handled.
class UnhandledEvent {
 public:
  /// `events` are those of a call; `since_last` is the time from the end of the call before it to
  /// its begin, which is longer if an event was handled. Returns how often in a row one event has
  /// been returned without being handled.
  int count(std::span<const epoll_event> events, std::chrono::nanoseconds since_last);

 private:
  void* handler_ = nullptr;  // The user data of the event.
  int repetitions_ = 0;
};

}  // namespace gallop::parallel

#include "gallop/parallel/libtorch_system_calls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>

#include <array>
#include <chrono>
#include <span>
#include <string>

#include <gtest/gtest.h>

namespace gallop::parallel {
namespace {

std::string file_of(const void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 ? info.dli_fname : "";
}

// What a shared library calls by these names.
TEST(SystemCalls, OfThisProgramAreWhatLibTorchFinds) {
  interpose_system_calls();
  for (const char* name : {"getnameinfo", "epoll_wait"}) {
    EXPECT_EQ(file_of(dlsym(RTLD_DEFAULT, name)),
              file_of(reinterpret_cast<const void*>(&interpose_system_calls)));
  }
}

TEST(UnhandledEvent, IsCountedWhileItReturnsAtOnceAndAlone) {
  constexpr std::chrono::nanoseconds kAtOnce(200), kHandled(5000);
  int first = 0, second = 0;
  std::array<epoll_event, 2> events{};
  events[0].data.ptr = &first;
  events[1].data.ptr = &second;
  const std::span<const epoll_event> all = events;
  UnhandledEvent unhandled;
  EXPECT_EQ(unhandled.count(all.first(1), kHandled), 0);
  EXPECT_EQ(unhandled.count(all.first(1), kAtOnce), 1);
  EXPECT_EQ(unhandled.count(all.first(1), kAtOnce), 2);
  EXPECT_EQ(unhandled.count(all.first(1), kHandled), 0);
  EXPECT_EQ(unhandled.count(all.last(1), kAtOnce), 0);
  EXPECT_EQ(unhandled.count(all.last(1), kAtOnce), 1);
  EXPECT_EQ(unhandled.count({}, kAtOnce), 0);
  EXPECT_EQ(unhandled.count(all.last(1), kAtOnce), 0);
  EXPECT_EQ(unhandled.count(all, kAtOnce), 0);
  EXPECT_EQ(unhandled.count(all, kAtOnce), 0);
}

TEST(NumericHostNames, LeaveOtherCallersTheSystemsAnswer) {
  const sockaddr_in address{
      .sin_family = AF_INET, .sin_port = htons(80), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const auto answer_of = [&](decltype(&getnameinfo) function, int flags) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> service{};
    const int code = function(reinterpret_cast<const sockaddr*>(&address), sizeof(address),
                              host.data(), host.size(), service.data(), service.size(), flags);
    return std::to_string(code) + " " + host.data() + " " + service.data();
  };
  const auto of_system = reinterpret_cast<decltype(&getnameinfo)>(dlsym(RTLD_NEXT, "getnameinfo"));
  ASSERT_NE(of_system, nullptr);
  ASSERT_NE(of_system, &getnameinfo);
  EXPECT_EQ(answer_of(&getnameinfo, NI_NUMERICSERV), answer_of(of_system, NI_NUMERICSERV));
  EXPECT_EQ(answer_of(&getnameinfo, NI_NUMERICHOST | NI_NUMERICSERV), "0 127.0.0.1 80");
}

}  // namespace
}  // namespace gallop::parallel

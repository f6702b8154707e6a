#include "gallop/parallel/numeric_host_names.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace gallop::parallel {
namespace {

std::string file_of(const void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 ? info.dli_fname : "";
}

// What a shared library calls by this name.
TEST(NumericHostNames, AreWhatLibTorchFinds) {
  use_numeric_host_names();
  EXPECT_EQ(file_of(dlsym(RTLD_DEFAULT, "getnameinfo")),
            file_of(reinterpret_cast<const void*>(&use_numeric_host_names)));
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

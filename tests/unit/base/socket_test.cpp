#include "gallop/base/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <cerrno>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop {
namespace {

TEST(Socket, ListensAtOneAddressOnce) {
  int reason = 0;
  const FileDescriptor first = listen_at(resolve("127.0.0.1", 0).front(), reason);
  ASSERT_TRUE(first);
  const SocketAddress address = address_of(first);
  EXPECT_EQ(address.host(), "127.0.0.1");
  EXPECT_GT(address.port(), 0);
  EXPECT_TRUE(address.is_loopback());
  EXPECT_FALSE(listen_at(address, reason));
  EXPECT_EQ(reason, EADDRINUSE);
}

TEST(Socket, ReportsTheLimitOfOpenFiles) {
  const SocketAddress address = resolve("127.0.0.1", 0).front();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int listens = 0, connects = 0;
  const bool has_listener = static_cast<bool>(listen_at(address, listens));
  const bool has_socket = static_cast<bool>(start_to_connect(address, std::nullopt, connects));
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(has_listener);
  EXPECT_FALSE(has_socket);
  EXPECT_EQ(listens, EMFILE);
  EXPECT_EQ(connects, EMFILE);
}

TEST(Socket, DetectsAClosedConnection) {
  int reason = 0;
  const FileDescriptor listener = listen_at(resolve("127.0.0.1", 0).front(), reason);
  const FileDescriptor socket = start_to_connect(address_of(listener), std::nullopt, reason);
  watch_peer(socket);
  int value = 0;
  socklen_t size = sizeof(value);
  ASSERT_EQ(getsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
  EXPECT_EQ(value, 1);
  ASSERT_EQ(getsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
  EXPECT_EQ(value, 30'000);
}

TEST(Socket, DoesNotListenAtAnAddressOfAnotherHost) {
  int reason = 0;
  EXPECT_FALSE(listen_at(resolve("192.0.2.1", 29400).front(), reason));
  EXPECT_EQ(reason, EADDRNOTAVAIL);
}

TEST(Socket, ReportsUnresolvableNames) {
  EXPECT_THROW(resolve("missing.invalid", 1), UsageError);
  EXPECT_THROW(addresses_of_interface("nosuch0"), UsageError);
  EXPECT_EQ(addresses_of_interface("lo").front().host(), "127.0.0.1");
  EXPECT_EQ(interface_of("127.0.0.1"), "lo");
  EXPECT_THROW(interface_of("192.0.2.1"), UsageError);  // Reserved for documentation (RFC 5737).
}

TEST(Socket, RecognizesLoopback) {
  for (const char* host : {"127.0.0.1", "127.0.1.1", "::1"}) {
    EXPECT_TRUE(resolve(host, 1).front().is_loopback()) << host;
  }
  for (const char* host : {"10.0.0.1", "128.0.0.1", "fd00::1"}) {
    EXPECT_FALSE(resolve(host, 1).front().is_loopback()) << host;
  }
}

TEST(Socket, ConnectsToItsOwnHost) {
  EXPECT_EQ(address_toward("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(resolve("10.0.0.1", 7).front().with_port(70000 - 65536).port(), 4464);
}

}  // namespace
}  // namespace gallop

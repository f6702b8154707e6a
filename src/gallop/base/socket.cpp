#include "gallop/base/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop {

namespace {

const sockaddr* pointer_to(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

SocketAddress copy_of(const sockaddr* address, socklen_t size) {
  SocketAddress copy;
  std::memcpy(&copy.storage, address, size);
  copy.size = size;
  return copy;
}

bool is_v6(const SocketAddress& address) { return address.storage.ss_family == AF_INET6; }
const sockaddr_in& v4(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in&>(address.storage);
}
const sockaddr_in6& v6(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in6&>(address.storage);
}

FileDescriptor make_socket(const SocketAddress& address, int kind) {
  return FileDescriptor(::socket(address.storage.ss_family, kind | SOCK_CLOEXEC, 0));
}

std::vector<std::pair<std::string, SocketAddress>> all_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    throw DeviceError(fmt::format("cannot list the network interfaces: {}",
                                  std::generic_category().message(errno)));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> keeper(list, freeifaddrs);
  std::vector<std::pair<std::string, SocketAddress>> all;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family == AF_INET) {
      all.emplace_back(one->ifa_name, copy_of(one->ifa_addr, sizeof(sockaddr_in)));
    }
    if (family == AF_INET6) {
      all.emplace_back(one->ifa_name, copy_of(one->ifa_addr, sizeof(sockaddr_in6)));
    }
  }
  return all;
}

}  // namespace

std::string SocketAddress::host() const {
  char text[NI_MAXHOST] = "";
  getnameinfo(pointer_to(*this), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

int SocketAddress::port() const {
  return ntohs(is_v6(*this) ? v6(*this).sin6_port : v4(*this).sin_port);
}

SocketAddress SocketAddress::with_port(int port) const {
  SocketAddress other = *this;
  const in_port_t number = htons(static_cast<uint16_t>(port));
  if (is_v6(other)) {
    reinterpret_cast<sockaddr_in6&>(other.storage).sin6_port = number;
  } else {
    reinterpret_cast<sockaddr_in&>(other.storage).sin_port = number;
  }
  return other;
}

bool SocketAddress::is_loopback() const {
  if (is_v6(*this)) return IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr);
  return ntohl(v4(*this).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

std::vector<SocketAddress> resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int bad = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (bad != 0) throw UsageError(fmt::format("{}: {}", printable(host), gai_strerror(bad)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> keeper(list, freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    addresses.push_back(copy_of(one->ai_addr, one->ai_addrlen));
  }
  return addresses;
}

std::vector<SocketAddress> addresses_of_interface(const std::string& name) {
  std::vector<SocketAddress> addresses;
  for (const auto& [interface, address] : all_interfaces()) {
    if (interface == name) addresses.push_back(address);
  }
  if (addresses.empty()) {
    throw UsageError(
        fmt::format("this host has no interface '{}' with an address", printable(name)));
  }
  return addresses;
}

std::string interface_of(const std::string& address) {
  for (const auto& [interface, one] : all_interfaces()) {
    if (one.host() == address) return interface;
  }
  throw UsageError(fmt::format("no interface of this host has the address {}", printable(address)));
}

SocketAddress address_of(const FileDescriptor& socket) {
  SocketAddress address;
  address.size = sizeof(address.storage);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address;
}

SocketAddress peer_of(const FileDescriptor& socket) {
  SocketAddress address;
  address.size = sizeof(address.storage);
  getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address;
}

FileDescriptor listen_at(const SocketAddress& address, int& reason) {
  FileDescriptor socket = make_socket(address, SOCK_STREAM);
  const int on = 1;
  if (!socket || setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(socket.get(), pointer_to(address), address.size) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    reason = errno;
    return {};
  }
  return socket;
}

FileDescriptor start_to_connect(const SocketAddress& address,
                                const std::optional<SocketAddress>& from, int& reason) {
  FileDescriptor socket = make_socket(address, SOCK_STREAM | SOCK_NONBLOCK);
  const int on = 1;
  // Disables Nagle's algorithm, as messages are small.
  if (!socket || setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
      (from && bind(socket.get(), pointer_to(*from), from->size) != 0) ||
      (connect(socket.get(), pointer_to(address), address.size) != 0 && errno != EINPROGRESS)) {
    reason = errno;
    return {};
  }
  return socket;
}

void watch_peer(const FileDescriptor& socket) {
  constexpr int kOn = 1, kIdleSeconds = 10, kBetweenSeconds = 5, kProbes = 4;
  constexpr int kUnansweredMilliseconds = 30'000;
  const auto set = [&](int level, int option, const int& value) {
    setsockopt(socket.get(), level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, kOn);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kBetweenSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnansweredMilliseconds);
}

std::string address_toward(const std::string& host) {
  constexpr int kAnyPort = 9;
  int reason = 0;
  for (const SocketAddress& address : resolve(host, kAnyPort)) {
    // Sends nothing, but selects the source address.
    const FileDescriptor socket = make_socket(address, SOCK_DGRAM);
    if (socket && connect(socket.get(), pointer_to(address), address.size) == 0) {
      return address_of(socket).host();
    }
    reason = errno;
  }
  throw DeviceError(
      fmt::format("cannot reach {}: {}", printable(host), std::generic_category().message(reason)));
}

}  // namespace gallop

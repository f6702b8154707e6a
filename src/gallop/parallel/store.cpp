#include "gallop/parallel/store.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "gallop/base/error.h"
#include "gallop/base/file.h"

namespace gallop::parallel {

namespace {

struct Addresses {
  addrinfo* first = nullptr;
  Addresses() = default;
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
};

// A socket that listens, and the port that it has got.
std::pair<FileDescriptor, int> listen_at(const std::string& host, int port) {
  Addresses addresses;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const int bad = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses.first);
  if (bad != 0) throw UsageError(fmt::format("{}: {}", host, gai_strerror(bad)));
  int reason = 0;
  for (const addrinfo* one = addresses.first; one != nullptr; one = one->ai_next) {
    FileDescriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (socket.get() < 0 || bind(socket.get(), one->ai_addr, one->ai_addrlen) != 0 ||
        listen(socket.get(), SOMAXCONN) != 0) {
      reason = errno;
      continue;
    }
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    const int found = bound.ss_family == AF_INET6
                          ? ntohs(reinterpret_cast<const sockaddr_in6&>(bound).sin6_port)
                          : ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
    return {std::move(socket), found};
  }
  throw UsageError(fmt::format("cannot listen at {} port {}: {}", host, port,
                               std::generic_category().message(reason)));
}

}  // namespace

struct StoreServer::Impl {
  int port = 0;
  c10::intrusive_ptr<c10d::TCPStore> store;
};

StoreServer::StoreServer(const std::string& host, int port) : impl_(std::make_unique<Impl>()) {
  auto [socket, found] = listen_at(host, port);
  impl_->port = found;
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(found);
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = socket.release();  // The store closes it.
  impl_->store = c10::make_intrusive<c10d::TCPStore>(host, options);
}

StoreServer::~StoreServer() = default;

int StoreServer::port() const { return impl_->port; }

}  // namespace gallop::parallel

#include "gallop/parallel/store.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/socket.h"
#include "gallop/parallel/libtorch_system_calls.h"

namespace gallop::parallel {

namespace {

// A listening socket and its port.
std::pair<FileDescriptor, int> listen_at_one(const std::string& host, int port) {
  int reason = 0;
  for (const SocketAddress& address : resolve(host, port)) {
    if (FileDescriptor socket = listen_at(address, reason)) {
      const int found = address_of(socket).port();
      return {std::move(socket), found};
    }
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
  auto [socket, found] = listen_at_one(host, port);
  impl_->port = found;
  interpose_system_calls();
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

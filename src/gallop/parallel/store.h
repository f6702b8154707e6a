#pragma once

#include <memory>
#include <string>

namespace gallop::parallel {

/// Serves the rendezvous store, c10d's TCPStore (see RendezvousOptions), as long as it lives.
class StoreServer {
 public:
  /// Listens at this address of this host alone. Port 0 takes a free one. Throws UsageError if the
  /// host has no such address, or the port is in use.
  StoreServer(const std::string& host, int port);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::parallel

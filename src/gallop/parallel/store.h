#pragma once

#include <memory>
#include <string>

namespace gallop::parallel {

/// Serves the store, c10d's TCPStore, in which processes meet (see RendezvousOptions), as long as
/// it lives.
class StoreServer {
 public:
  /// Listens at one address of this host and nowhere else. Port 0 takes one that is free. Throws
  /// UsageError where the host has no such address, or the port is taken.
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

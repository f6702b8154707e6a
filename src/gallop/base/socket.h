#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// An IPv4 or IPv6 address and a port.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  std::string host() const;  ///< Numeric.
  int port() const;
  SocketAddress with_port(int port) const;
  bool is_loopback() const;
};

/// Resolves a host name; addresses are in the order to try. Throws UsageError with the resolver's
/// reason on failure. May take seconds.
std::vector<SocketAddress> resolve(const std::string& host, int port);

/// The addresses of an interface ("eth0"). Throws UsageError for an unknown interface, or one
/// without addresses.
std::vector<SocketAddress> addresses_of_interface(const std::string& name);

/// The name of the interface with this numeric address. Throws UsageError if there is none.
std::string interface_of(const std::string& address);

/// The local address of a socket, and below its remote address.
SocketAddress address_of(const FileDescriptor& socket);
SocketAddress peer_of(const FileDescriptor& socket);

/// A TCP socket that listens at this address only; port 0 selects a free port. If it fails, returns
/// an empty descriptor, with an errno value in `reason`.
FileDescriptor listen_at(const SocketAddress& address, int& reason);

/// A non-blocking TCP socket that is connecting; it becomes writable once connected, and has an
/// error on failure. With `from` it connects from that address. If it fails at once, returns an
/// empty descriptor, with an errno value in `reason`.
FileDescriptor start_to_connect(const SocketAddress& address,
                                const std::optional<SocketAddress>& from, int& reason);

/// Makes a connection fail within half a minute if the other host vanishes.
void watch_peer(const FileDescriptor& socket);

/// The numeric local address from which this host reaches another one. Throws DeviceError without a
/// route.
std::string address_toward(const std::string& host);

}  // namespace gallop

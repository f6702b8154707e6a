#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// An address and a port, of IP version 4 or 6.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  std::string host() const;  ///< In numbers.
  int port() const;
  SocketAddress with_port(int port) const;
  bool is_loopback() const;
};

/// The addresses of a host's name, in the order in which they are to be tried. Throws UsageError
/// with the resolver's reason where there are none. May take seconds.
std::vector<SocketAddress> resolve(const std::string& host, int port);

/// Those of an interface ("eth0"). Throws UsageError where there is no such interface, or it has no
/// address.
std::vector<SocketAddress> addresses_of_interface(const std::string& name);

/// The name of the interface that has this address, in numbers. Throws UsageError where none has.
std::string interface_of(const std::string& address);

/// Where a socket listens or connects from, and where it is connected to.
SocketAddress address_of(const FileDescriptor& socket);
SocketAddress peer_of(const FileDescriptor& socket);

/// A TCP socket that listens at this address and nowhere else; port 0 takes one that is free.
/// Without a socket `reason` says why there is none, as in errno.
FileDescriptor listen_at(const SocketAddress& address, int& reason);

/// A TCP socket that is being connected, and does not block; it can be written to once it is, and
/// has an error where it cannot be. With `from` it connects from that address. Without a socket
/// `reason` says why there is none.
FileDescriptor start_to_connect(const SocketAddress& address,
                                const std::optional<SocketAddress>& from, int& reason);

/// Has a connection break within half a minute where the other host has gone without a word.
void watch_peer(const FileDescriptor& socket);

/// The address, in numbers, from which this host reaches another. Throws DeviceError where it does
/// not know a way.
std::string address_toward(const std::string& host);

}  // namespace gallop

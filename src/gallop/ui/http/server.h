#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "gallop/base/file.h"
#include "gallop/ui/http/message.h"

namespace gallop::ui::http {

/// What one client, and all of them, may take of a server.
struct ServerLimits {
  size_t header_bytes = size_t{16} << 10;  ///< Of the request line and the headers.
  size_t body_bytes = size_t{64} << 10;
  unsigned connections = 64;  ///< Others wait until one is free.
  unsigned seconds = 10;      ///< For a whole request, and between two pieces of an answer.
  int threads = 4;            ///< That answer.
};

struct Handlers {
  /// Called with a request whose headers are here and whose body is not: who is refused gets this
  /// answer, whatever the body is. Must not take long.
  std::function<std::optional<Response>(const Request&)> refuse;
  /// Called with the whole request by any of the threads.
  std::function<Response(const Request&)> answer;
};

/// An HTTP/1.1 server over libmicrohttpd: one thread has all connections, so that slow clients hold
/// no one up, and others make the answers. Handlers must not throw.
class Server {
 public:
  /// Takes a socket that listens. Throws DeviceError where the system does not let it.
  Server(FileDescriptor socket, Handlers handlers, const ServerLimits& limits = {});
  /// Lets answers that are being made be finished, and closes all connections.
  ~Server();

 private:
  class Connections;
  std::unique_ptr<Connections> connections_;
};

}  // namespace gallop::ui::http

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "gallop/base/file.h"
#include "gallop/ui/http/message.h"

namespace gallop::ui::http {

/// Limits per client and for all clients.
struct ServerLimits {
  size_t header_bytes = size_t{16} << 10;  ///< Request line and headers.
  size_t body_bytes = size_t{64} << 10;
  unsigned connections = 64;  ///< Further ones wait for a free one.
  unsigned seconds = 10;      ///< For a complete request, and between two pieces of a response.
  int threads = 4;            ///< For request handlers.
};

struct Handlers {
  /// Called after the headers and before the body: a returned response rejects the request. Must be
  /// fast.
  std::function<std::optional<Response>(const Request&)> refuse;
  /// Called with the complete request by any of the threads.
  std::function<Response(const Request&)> answer;
};

/// An HTTP/1.1 server on libmicrohttpd: one thread serves all connections, so that slow clients do
/// not block others, and a pool of threads runs the handlers. Handlers must not throw.
class Server {
 public:
  /// Takes a listening socket. Throws DeviceError if the server cannot start.
  Server(FileDescriptor socket, Handlers handlers, const ServerLimits& limits = {});
  /// Waits for running handlers, and closes all connections.
  ~Server();

 private:
  class Connections;
  std::unique_ptr<Connections> connections_;
};

}  // namespace gallop::ui::http

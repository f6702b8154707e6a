#pragma once

#include <poll.h>

#include <list>
#include <string>
#include <vector>

#include "gallop/base/socket.h"
#include "gallop/tune/remote/address.h"
#include "gallop/tune/remote/line_socket.h"
#include "gallop/tune/remote/message.h"
#include "gallop/tune/tuner.h"

namespace gallop::tune {

/// Serves a study that one process leads to remote workers over TCP. Has no threads: all work is
/// done in serve().
class Coordinator {
 public:
  struct Options {
    std::string host = "127.0.0.1";  ///< Address to listen on; a loopback address is not
                                     ///< reachable from other hosts.
    int port = 0;  ///< 0: that of the last coordinator if it is free, otherwise any.
    /// File with its address and token, which later coordinators reuse.
    fs::path address_file;
  };

  /// Throws UsageError if this host does not have the address, DeviceError if it cannot listen
  /// there.
  Coordinator(Tuner& tuner, const Options& options);

  const RemoteAddress& address() const { return address_; }
  /// Waits for requests for at most the given time, without accessing the study, which other
  /// threads may use in the meantime.
  void wait(int milliseconds) const;
  /// Waits for requests for at most the given time, and replies. Throws the errors of the study's
  /// storage; clients then retry with the next coordinator.
  void serve(int milliseconds);
  /// The number of connected authenticated workers.
  size_t workers() const;

 private:
  struct Connection {
    LineSocket socket;
    double since = 0;
    bool is_known = false;  ///< Authenticated.
    bool is_over = false;   ///< To be closed once its output is flushed.
    bool is_gone = false;
  };

  std::vector<pollfd> sockets() const;
  bool listen(const std::string& host, int port, std::string& why);
  void accept_all();
  void read(Connection& connection);
  void answer_line(Connection& connection, const std::string& line);
  Answer welcome(Connection& connection, const HelloRequest& hello) const;
  Answer answer(const Request& request);
  void drop(double now);

  Tuner& tuner_;
  RemoteAddress address_;
  FileDescriptor listener_;
  std::list<Connection> connections_;
  double next_look_ = 0;  // For the check for silent workers.
};

}  // namespace gallop::tune

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

/// Lets workers elsewhere take part in a study that one process leads, over TCP. Without threads:
/// something happens only in serve().
class Coordinator {
 public:
  struct Options {
    std::string host = "127.0.0.1";  ///< Where it listens; other hosts reach no loopback address.
    int port = 0;                    ///< 0: that of the last coordinator, if it is free, or any.
    /// Where workers find it, and its token; a later coordinator takes both over from it.
    fs::path address_file;
  };

  /// Throws UsageError where the host has no address, DeviceError where it cannot listen there.
  Coordinator(Tuner& tuner, const Options& options);

  const RemoteAddress& address() const { return address_; }
  /// Waits for requests at most so long, without a look at the study, which other threads may have
  /// meanwhile.
  void wait(int milliseconds) const;
  /// Waits for requests at most so long, and answers those that there are. Throws what the study's
  /// storage throws; whoever asked asks the next coordinator again then.
  void serve(int milliseconds);
  /// How many have shown the token and not left.
  size_t workers() const;

 private:
  struct Connection {
    LineSocket socket;
    double since = 0;
    bool is_known = false;  ///< Has shown the token.
    bool is_over = false;   ///< To be closed once all is written.
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
  double next_look_ = 0;  // For silent workers.
};

}  // namespace gallop::tune

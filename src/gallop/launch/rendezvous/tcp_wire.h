#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/socket.h"
#include "gallop/launch/rendezvous/wire.h"

namespace gallop::launch {

/// Where one of --rdzv is.
struct Candidate {
  std::string host;
  int port = 29400;
};

/// "a,b:29500" or "[fd00::1]:29400"; the port is 29400 where it is not given. Throws UsageError.
std::vector<Candidate> parse_candidates(const std::string& text);

/// Lines over TCP. What is no message closes the link, and so does a link on which none came in
/// time.
class TcpWire final : public Wire {
 public:
  /// With an interface, it listens and connects at that one's addresses alone. Throws UsageError
  /// where there is none of this name.
  TcpWire(std::vector<Candidate> candidates, const std::string& interface);

  void look_up() override;
  Link connect(int candidate) override;
  void send(Link link, const Message& message) override;
  void close(Link link) override;
  bool listen(int candidate) override;
  void stop_listening() override;
  std::string address_of(Link link) const override;
  std::string describe(int candidate) const override;

  /// Where it listens; for a wire that does.
  SocketAddress address() const { return gallop::address_of(listener_); }
  /// What has happened, after waiting for it at most so long.
  std::vector<Event> wait(int milliseconds);
  /// Sends what is left, and waits until the other sides have it or that many seconds have passed.
  void finish(double seconds);

 private:
  struct Place {
    Candidate candidate;
    std::vector<SocketAddress> addresses{};
    size_t next = 0;  // Address to try.
    std::string reason{};
  };
  struct Line {
    FileDescriptor socket;
    std::string in{}, out{};
    int candidate = -1;  // Incoming: -1.
    bool is_connected = false, has_spoken = false;
    bool is_closing = false, is_shut = false;  // Nothing more is sent.
    double since = 0;
    std::string failure{};  // It is to be dropped.
  };

  std::optional<SocketAddress> source_for(const SocketAddress& address) const;
  bool is_on_interface(const SocketAddress& address) const;
  void accept_all();
  void read(Link link, Line& line, std::vector<Event>& events);
  void take_lines(Link link, Line& line, std::vector<Event>& events);
  void write(Line& line);
  void drop_failed(std::vector<Event>& events);

  std::vector<Place> places_;
  std::vector<SocketAddress> own_;  // Of the interface; empty: any.
  FileDescriptor listener_;
  std::map<Link, Line> lines_;
  Link next_link_ = 0;
};

}  // namespace gallop::launch

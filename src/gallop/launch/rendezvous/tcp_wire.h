#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/socket.h"
#include "gallop/launch/rendezvous/wire.h"

namespace gallop::launch {

/// The address of a --rdzv candidate.
struct Candidate {
  std::string host;
  int port = 29400;
};

/// Parses "a,b:29500" or "[fd00::1]:29400"; the default port is 29400. Throws UsageError.
std::vector<Candidate> parse_candidates(const std::string& text);

/// Lines over TCP. An invalid message or a missing first message closes the link.
class TcpWire final : public Wire {
 public:
  /// With an interface, listens and connects only at its addresses. Throws UsageError for an
  /// unknown interface.
  TcpWire(std::vector<Candidate> candidates, const std::string& interface);

  void look_up() override;
  Link connect(int candidate) override;
  void send(Link link, const Message& message) override;
  void close(Link link) override;
  bool listen(int candidate) override;
  void stop_listening() override;
  std::string address_of(Link link) const override;
  std::string describe(int candidate) const override;

  /// The listening address, if it listens.
  SocketAddress address() const { return gallop::address_of(listener_); }
  /// The new events, after waiting for at most this long.
  std::vector<Event> wait(int milliseconds);
  /// Sends pending data, and waits until the other sides have received it, or for this many
  /// seconds.
  void finish(double seconds);

 private:
  struct Place {
    Candidate candidate;
    std::vector<SocketAddress> addresses{};
    size_t next = 0;  // Next address to try.
    std::string reason{};
  };
  struct Line {
    FileDescriptor socket;
    std::string in{}, out{};
    int candidate = -1;  // -1 for an incoming link.
    bool is_connected = false, has_spoken = false;
    bool is_closing = false, is_shut = false;  // Nothing more is sent.
    double since = 0;
    std::string failure{};  // Error for which it is to be closed.
  };

  std::optional<SocketAddress> source_for(const SocketAddress& address) const;
  bool is_on_interface(const SocketAddress& address) const;
  void accept_all();
  void read(Link link, Line& line, std::vector<Event>& events);
  void take_lines(Link link, Line& line, std::vector<Event>& events);
  void write(Line& line);
  void drop_failed(std::vector<Event>& events);

  std::vector<Place> places_;
  std::vector<SocketAddress> own_;  // Addresses of the interface; empty: any.
  FileDescriptor listener_;
  std::map<Link, Line> lines_;
  Link next_link_ = 0;
};

}  // namespace gallop::launch

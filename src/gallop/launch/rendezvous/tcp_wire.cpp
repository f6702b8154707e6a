#include "gallop/launch/rendezvous/tcp_wire.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::launch {

namespace {

constexpr size_t kLongestLine = 65536, kMostLines = 4096;
// Timeout for the first message, and for the other side to close.
constexpr double kSilentSeconds = 5;

std::string error_text(int error) { return std::generic_category().message(error); }

Candidate parse_candidate(const std::string& text) {
  Candidate candidate;
  std::string port;
  if (text.starts_with('[')) {
    const size_t end = std::min(text.find(']'), text.size() - 1);
    candidate.host = text[end] == ']' ? text.substr(1, end - 1) : "";
    port = text.substr(end + 1);
  } else if (const size_t colon = text.find(':'); colon == text.rfind(':')) {
    candidate.host = text.substr(0, colon);
    port = text.substr(std::min(colon, text.size()));
  } else {
    candidate.host = text;  // An IPv6 address.
  }
  if (!port.empty()) {
    candidate.port = parse_number<int>(port.substr(1)).value_or(0);
  }
  if (candidate.host.empty() || (!port.empty() && port.front() != ':') || candidate.port < 1 ||
      candidate.port > 65535) {
    throw UsageError(fmt::format("--rdzv: '{}' is not HOST or HOST:PORT", printable(text)));
  }
  return candidate;
}

}  // namespace

std::vector<Candidate> parse_candidates(const std::string& text) {
  std::vector<Candidate> candidates;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    candidates.push_back(parse_candidate(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return candidates;
}

TcpWire::TcpWire(std::vector<Candidate> candidates, const std::string& interface) {
  for (Candidate& candidate : candidates) places_.push_back({.candidate = std::move(candidate)});
  if (!interface.empty()) own_ = addresses_of_interface(interface);
  look_up();
}

void TcpWire::look_up() {
  for (Place& place : places_) {
    try {
      place.addresses = resolve(place.candidate.host, place.candidate.port);
    } catch (const UsageError& error) {
      place.addresses.clear();
      place.reason = error.what();
    }
  }
}

std::optional<SocketAddress> TcpWire::source_for(const SocketAddress& address) const {
  for (const SocketAddress& own : own_) {
    if (own.storage.ss_family == address.storage.ss_family) return own.with_port(0);
  }
  return std::nullopt;
}

bool TcpWire::is_on_interface(const SocketAddress& address) const {
  return own_.empty() || std::any_of(own_.begin(), own_.end(), [&](const SocketAddress& own) {
           return own.host() == address.host();
         });
}

Link TcpWire::connect(int candidate) {
  Line line{.candidate = candidate, .since = monotonic_seconds()};
  Place& place = places_[static_cast<size_t>(candidate)];
  if (place.addresses.empty()) {
    line.failure = place.reason;
  } else {
    const SocketAddress& address = place.addresses[place.next % place.addresses.size()];
    int reason = 0;
    line.socket = start_to_connect(address, source_for(address), reason);
    if (!line.socket) line.failure = error_text(reason);
  }
  lines_.emplace(next_link_, std::move(line));
  return next_link_++;
}

void TcpWire::send(Link link, const Message& message) {
  const auto found = lines_.find(link);
  if (found == lines_.end() || found->second.is_closing) return;
  found->second.out += to_line(message) + "\n";
  if (found->second.is_connected) write(found->second);
}

void TcpWire::close(Link link) {
  const auto found = lines_.find(link);
  if (found == lines_.end()) return;
  Line& line = found->second;
  line.is_closing = true;
  line.since = monotonic_seconds();
  if (line.is_connected) write(line);
  // Without a connection nothing was sent, so that no reply is pending.
  if (!line.is_connected) lines_.erase(found);
}

bool TcpWire::listen(int candidate) {
  Place& place = places_[static_cast<size_t>(candidate)];
  for (const SocketAddress& address : place.addresses) {
    if (!is_on_interface(address)) continue;
    int reason = 0;
    listener_ = listen_at(address, reason);
    if (listener_) {
      fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
      return true;
    }
    if (reason != EADDRNOTAVAIL) place.reason = error_text(reason);
  }
  return false;
}

void TcpWire::stop_listening() { listener_ = FileDescriptor(); }

std::string TcpWire::address_of(Link link) const {
  const auto found = lines_.find(link);
  return found == lines_.end() || !found->second.socket ? "?"
                                                        : peer_of(found->second.socket).host();
}

std::string TcpWire::describe(int candidate) const {
  const Place& place = places_[static_cast<size_t>(candidate)];
  const std::string where =
      fmt::format("{} port {}", printable(place.candidate.host), place.candidate.port);
  return place.reason.empty() ? where : fmt::format("{} ({})", where, place.reason);
}

std::vector<Event> TcpWire::wait(int milliseconds) {
  std::vector<pollfd> waits = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
  std::vector<Link> links;
  bool has_failed = false;
  for (const auto& [link, line] : lines_) {
    has_failed = has_failed || !line.failure.empty();
    const bool writes = !line.is_connected || !line.out.empty();
    waits.push_back({.fd = line.socket.get(),
                     .events = static_cast<short>(POLLIN | (writes ? POLLOUT : 0)),
                     .revents = 0});
    links.push_back(link);
  }
  if (poll(waits.data(), waits.size(), has_failed ? 0 : milliseconds) < 0) return {};
  std::vector<Event> events;
  for (size_t i = 0; i < links.size(); ++i) {
    Line& line = lines_.at(links[i]);
    const short happened = waits[i + 1].revents;
    if ((happened & (POLLOUT | POLLERR | POLLHUP)) != 0) write(line);
    if ((happened & (POLLIN | POLLERR | POLLHUP)) != 0) read(links[i], line, events);
  }
  if (waits.front().revents != 0) accept_all();
  drop_failed(events);
  return events;
}

void TcpWire::accept_all() {
  while (true) {
    FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    if (lines_.size() >= kMostLines) continue;
    Line line{.socket = std::move(socket), .is_connected = true, .since = monotonic_seconds()};
    lines_.emplace(next_link_++, std::move(line));
  }
}

void TcpWire::read(Link link, Line& line, std::vector<Event>& events) {
  std::array<char, 4096> part{};
  while (line.failure.empty()) {
    const ssize_t size = recv(line.socket.get(), part.data(), part.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size <= 0) {
      line.failure = size == 0 ? "closed" : error_text(errno);
    } else if (!line.is_closing) {
      line.in.append(part.data(), static_cast<size_t>(size));
      take_lines(link, line, events);
    }
  }
}

void TcpWire::take_lines(Link link, Line& line, std::vector<Event>& events) {
  size_t begin = 0;
  for (size_t end = 0; (end = line.in.find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto message = parse_message(std::string_view(line.in).substr(begin, end - begin));
    if (!message) {
      line.failure = "invalid message";
      return;
    }
    line.has_spoken = true;
    if (line.candidate >= 0) places_[static_cast<size_t>(line.candidate)].reason.clear();
    events.push_back({link, line.candidate < 0, std::move(message)});
  }
  line.in.erase(0, begin);
  if (line.in.size() > kLongestLine) line.failure = "invalid message";
}

void TcpWire::write(Line& line) {
  if (!line.failure.empty() || line.is_shut) return;
  if (!line.is_connected) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(line.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      line.failure = error_text(error);
      return;
    }
    line.is_connected = true;
  }
  while (!line.out.empty()) {
    const ssize_t size = ::send(line.socket.get(), line.out.data(), line.out.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) line.failure = error_text(errno);
      return;
    }
    line.out.erase(0, static_cast<size_t>(size));
  }
  if (!line.is_closing) return;
  // Closing at once could discard data that the other side has not read yet.
  shutdown(line.socket.get(), SHUT_WR);
  line.is_shut = true;
}

void TcpWire::drop_failed(std::vector<Event>& events) {
  const double now = monotonic_seconds();
  for (auto one = lines_.begin(); one != lines_.end();) {
    Line& line = one->second;
    const bool is_silent =
        (line.is_closing || !line.has_spoken) && now - line.since > kSilentSeconds;
    if (is_silent && line.failure.empty()) line.failure = "timed out";
    if (line.out.size() > 16 * kLongestLine) line.failure = "it does not read";
    if (line.failure.empty()) {
      ++one;
      continue;
    }
    if (line.candidate >= 0 && !line.has_spoken) {
      Place& place = places_[static_cast<size_t>(line.candidate)];
      place.reason = line.failure;
      place.next += 1;
    }
    if (!line.is_closing) events.push_back({one->first, line.candidate < 0, std::nullopt});
    one = lines_.erase(one);
  }
}

void TcpWire::finish(double seconds) {
  const double until = monotonic_seconds() + seconds;
  const auto has_work = [this] {
    return std::any_of(lines_.begin(), lines_.end(),
                       [](const auto& one) { return one.second.is_closing; });
  };
  while (has_work() && monotonic_seconds() < until) wait(10);
}

}  // namespace gallop::launch

#include "gallop/tune/remote/coordinator.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/secret.h"
#include "gallop/base/text.h"

namespace gallop::tune {

namespace {

constexpr int kProtocol = 2;
constexpr size_t kMostConnections = 4096;
// Timeout for authentication, and for flushing a connection that is to be closed.
constexpr double kUnauthorizedSeconds = 5;
constexpr size_t kMostStrangerBytes = 4096;
// Checks for silent workers per heartbeat interval.
constexpr double kLooksInHeartbeat = 4;
constexpr int64_t kMostEvents = 1000;  // Per reply.
constexpr std::chrono::milliseconds kNoFilePause{50};

Trial trial_of(const Attempt& attempt) {
  return {.number = attempt.trial, .attempt = attempt.attempt};
}

// One overload per request type.
struct Call {
  Tuner& tuner;

  Answer operator()(const HelloRequest& /*hello*/) const {
    return RefusedAnswer{ExitCode::kUsage, "a second hello"};
  }
  Answer operator()(const AskRequest& ask) const { return tuner.ask(ask.worker); }
  Answer operator()(const SetRunFolderRequest& place) const {
    tuner.set_run_folder(trial_of(place.attempt), place.folder);
    return DoneAnswer{};
  }
  Answer operator()(const ShareRequest& share) const {
    tuner.share(trial_of(share.attempt), share.other, share.steps);
    return DoneAnswer{};
  }
  Answer operator()(const ReportRequest& report) const {
    return tuner.report(trial_of(report.attempt), report.step, report.value);
  }
  Answer operator()(const HeartbeatRequest& heartbeat) const {
    return tuner.heartbeat(trial_of(heartbeat.attempt));
  }
  Answer operator()(const TellRequest& tell) const {
    return CountsAnswer{tuner.tell(trial_of(tell.attempt), tell.outcome)};
  }
  Answer operator()(const ReleaseRequest& release) const {
    tuner.release(trial_of(release.attempt));
    return DoneAnswer{};
  }
  Answer operator()(const EventsRequest& events) const {
    return EventsAnswer{tuner.events(events.from, kMostEvents)};
  }
  Answer operator()(const Control& control) const {
    tuner.control(control);
    return DoneAnswer{};
  }
};

}  // namespace

Coordinator::Coordinator(Tuner& tuner, const Options& options) : tuner_(tuner) {
  RemoteAddress last;
  try {
    if (fs::exists(options.address_file)) last = read_address(options.address_file);
  } catch (const DataError&) {
    // A damaged file is replaced; workers that look for the last coordinator read the new one.
  }
  address_.token = last.token.empty() ? new_secret() : last.token;
  const int first_port = options.port != 0 ? options.port : last.port;
  std::string why;
  if (!listen(options.host, first_port, why) &&
      (options.port != 0 || !listen(options.host, 0, why))) {
    throw DeviceError(
        fmt::format("cannot listen at {} port {}: {}", printable(options.host), first_port, why));
  }
  write_address(options.address_file, address_);
}

bool Coordinator::listen(const std::string& host, int port, std::string& why) {
  for (const SocketAddress& address : resolve(host, port)) {
    int reason = 0;
    listener_ = listen_at(address, reason);
    if (!listener_) {
      why = std::generic_category().message(reason);
      continue;
    }
    fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
    const SocketAddress bound = address_of(listener_);
    const bool is_any = bound.host() == "0.0.0.0" || bound.host() == "::";
    address_.host = is_any ? host_name() : bound.host();
    address_.port = bound.port();
    return true;
  }
  return false;
}

size_t Coordinator::workers() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [](const Connection& one) { return one.is_known; }));
}

std::vector<pollfd> Coordinator::sockets() const {
  std::vector<pollfd> waits = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
  for (const Connection& connection : connections_) {
    const bool writes = connection.socket.waiting_bytes() > 0;
    waits.push_back({.fd = connection.socket.get(),
                     .events = static_cast<short>(POLLIN | (writes ? POLLOUT : 0)),
                     .revents = 0});
  }
  return waits;
}

void Coordinator::wait(int milliseconds) const {
  std::vector<pollfd> waits = sockets();
  poll(waits.data(), waits.size(), milliseconds);
}

void Coordinator::serve(int milliseconds) {
  std::vector<pollfd> waits = sockets();
  if (poll(waits.data(), waits.size(), milliseconds) > 0) {
    auto wait = waits.begin() + 1;
    for (Connection& connection : connections_) {
      if ((wait++)->revents != 0) read(connection);
    }
    if (waits.front().revents != 0) accept_all();
  }
  const double now = monotonic_seconds();
  drop(now);
  tuner_.flush();
  if (now < next_look_) return;
  next_look_ = now + tuner_.settings().heartbeat_seconds / kLooksInHeartbeat;
  tuner_.requeue_silent();
}

void Coordinator::accept_all() {
  while (true) {
    FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      // Pending connections would wake the poll at once until a descriptor is free.
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(kNoFilePause);
      return;
    }
    if (connections_.size() >= kMostConnections) continue;
    watch_peer(socket);
    connections_.push_back({.socket = LineSocket(std::move(socket)), .since = monotonic_seconds()});
  }
}

void Coordinator::read(Connection& connection) {
  LineSocket& socket = connection.socket;
  connection.is_gone = !socket.read(connection.is_known ? kMostRequestBytes : kMostStrangerBytes);
  while (!connection.is_over) {
    const auto line = socket.take_line();
    if (!line) break;
    answer_line(connection, *line);
  }
  if (!socket.write()) connection.is_gone = true;
}

void Coordinator::answer_line(Connection& connection, const std::string& line) {
  const auto request = parse_request(line);
  const auto* const hello = request ? std::get_if<HelloRequest>(&*request) : nullptr;
  if (!request || (!connection.is_known && hello == nullptr)) {
    connection.is_over = true;
    connection.since = monotonic_seconds();
    connection.socket.put(
        to_line(RefusedAnswer{ExitCode::kUsage, "the coordinator cannot parse this request"}));
    return;
  }
  connection.socket.put(
      to_line(connection.is_known ? answer(*request) : welcome(connection, *hello)));
}

Answer Coordinator::welcome(Connection& connection, const HelloRequest& hello) const {
  connection.since = monotonic_seconds();
  const bool is_trusted = is_same_secret(hello.token, address_.token);
  connection.is_known = is_trusted && hello.protocol == kProtocol;
  if (connection.is_known) return WelcomeAnswer{to_json(tuner_.settings())};
  connection.is_over = true;
  if (!is_trusted) return UnauthorizedAnswer{};
  return RefusedAnswer{ExitCode::kUsage, "the coordinator runs another version of Gallop"};
}

Answer Coordinator::answer(const Request& request) {
  try {
    return std::visit(Call{tuner_}, request);
  } catch (const Error& error) {
    // Storage errors are the coordinator's, not the worker's.
    if (error.code() == ExitCode::kDevice || error.code() == ExitCode::kData) throw;
    return RefusedAnswer{error.code(), error.what()};
  }
}

void Coordinator::drop(double now) {
  connections_.remove_if([now](const Connection& connection) {
    const bool is_late = now - connection.since > kUnauthorizedSeconds;
    if (connection.is_over && (connection.socket.waiting_bytes() == 0 || is_late)) return true;
    if (!connection.is_known && is_late) return true;
    return connection.is_gone || connection.socket.waiting_bytes() > kMostAnswerBytes;
  });
}

}  // namespace gallop::tune

#include "gallop/tune/remote/remote_study_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/socket.h"
#include "gallop/base/text.h"

namespace gallop::tune {

namespace {

// There is no connection, or it was closed.
class Lost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

constexpr std::chrono::milliseconds kFirstPause{20}, kLongestPause{1000};
constexpr double kConnectSeconds = 10;
constexpr double kPatienceSeconds = 300;
constexpr int kLookMilliseconds = 100;
constexpr const char* kWrongAnswer = "it sends invalid replies";

Attempt attempt_of(const Trial& trial) { return {trial.number, trial.attempt}; }

using IsOver = std::function<bool()>;

void wait_for(int socket, short what, const IsOver& is_over) {
  pollfd wait{.fd = socket, .events = what, .revents = 0};
  while (true) {
    const int ready = poll(&wait, 1, kLookMilliseconds);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw Lost(std::generic_category().message(errno));
    if (is_over()) throw Lost("no answer");
  }
}

LineSocket connected(const SocketAddress& address, const IsOver& is_over) {
  int reason = 0;
  FileDescriptor socket = start_to_connect(address, std::nullopt, reason);
  if (socket) {
    const double until = monotonic_seconds() + kConnectSeconds;
    wait_for(socket.get(), POLLOUT, [&] { return is_over() || monotonic_seconds() > until; });
    socklen_t size = sizeof(reason);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
    if (reason == 0) {
      watch_peer(socket);
      return LineSocket(std::move(socket));
    }
  }
  throw Lost(std::generic_category().message(reason));
}

// Connects to the first address that accepts.
LineSocket connected(const RemoteAddress& address, const IsOver& is_over) {
  std::string why = "no address";
  for (const SocketAddress& one : resolve(address.host, address.port)) {
    try {
      return connected(one, is_over);
    } catch (const Lost& lost) {
      why = lost.what();
    }
  }
  throw Lost(why);
}

[[noreturn]] void throw_refused(const RefusedAnswer& refused) {
  switch (refused.code) {
    case ExitCode::kUsage: throw UsageError(refused.text);
    case ExitCode::kData: throw DataError(refused.text);
    case ExitCode::kDevice: throw DeviceError(refused.text);
    default: throw InternalError(refused.text);
  }
}

}  // namespace

RemoteStudyClient::RemoteStudyClient(std::function<RemoteAddress()> find, Patience patience)
    : find_(std::move(find)), patience_(std::move(patience)), wait_(patience_) {
  if (patience_.seconds <= 0) patience_.seconds = kPatienceSeconds;
  heartbeat({});  // Connects, so that settings() are known; a call without side effects.
}

// Sends a request and waits for its reply.
Answer RemoteStudyClient::exchange(const Request& request) {
  socket_->put(to_line(request));
  while (true) {
    if (!socket_->write()) throw Lost("the connection is closed");
    const bool is_written = socket_->waiting_bytes() == 0;
    wait_for(socket_->get(), is_written ? POLLIN : POLLIN | POLLOUT,
             [&] { return wait_.is_over(); });
    const bool is_open = socket_->read(kMostAnswerBytes);
    if (const auto line = socket_->take_line()) {
      const auto answer = parse_answer(*line);
      if (!answer) throw Lost(kWrongAnswer);
      return *answer;
    }
    if (!is_open) throw Lost("the connection is closed");
  }
}

void RemoteStudyClient::connect() {
  RemoteAddress address;
  try {
    address = find_();
    place_ = fmt::format("{} port {}", printable(address.host), address.port);
    socket_.emplace(connected(address, [&] { return wait_.is_over(); }));
  } catch (const Error& error) {
    throw Lost(error.what());  // Retryable: the file may be written soon.
  }
  const Answer answer = exchange(HelloRequest{.token = address.token});
  if (std::holds_alternative<UnauthorizedAnswer>(answer))
    throw Lost("another study uses this address");
  if (const auto* const refused = std::get_if<RefusedAnswer>(&answer)) throw_refused(*refused);
  const auto* const welcome = std::get_if<WelcomeAnswer>(&answer);
  if (welcome == nullptr) throw Lost(kWrongAnswer);
  StudySettings settings = parse_settings(welcome->settings);
  if (settings_ && to_json(settings) != to_json(*settings_)) {
    throw UsageError("the coordinator now leads another study");
  }
  settings_ = std::move(settings);
}

template <typename Wanted>
Wanted RemoteStudyClient::call(const Request& request) {
  wait_ = Wait(patience_);
  std::chrono::milliseconds pause = kFirstPause;
  while (true) {
    try {
      if (!socket_) connect();
      Answer answer = exchange(request);
      if (const auto* const refused = std::get_if<RefusedAnswer>(&answer)) throw_refused(*refused);
      auto* const wanted = std::get_if<Wanted>(&answer);
      if (wanted == nullptr) throw Lost(kWrongAnswer);
      return std::move(*wanted);
    } catch (const Lost& lost) {
      socket_.reset();
      if (wait_.is_over()) {
        throw StudyUnreachable(fmt::format("the study's coordinator{}{} cannot be reached: {}",
                                           place_.empty() ? "" : " at ", place_, lost.what()));
      }
    } catch (...) {
      socket_.reset();
      throw;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

Assignment RemoteStudyClient::ask(const std::string& worker) {
  return call<Assignment>(AskRequest{worker});
}

void RemoteStudyClient::set_run_folder(const Trial& trial, const std::string& folder) {
  call<DoneAnswer>(SetRunFolderRequest{attempt_of(trial), folder});
}

void RemoteStudyClient::share(const Trial& trial, int64_t other, int64_t steps) {
  call<DoneAnswer>(ShareRequest{attempt_of(trial), other, steps});
}

Verdict RemoteStudyClient::report(const Trial& trial, int64_t step, double value) {
  return call<Verdict>(ReportRequest{attempt_of(trial), step, value});
}

Verdict RemoteStudyClient::heartbeat(const Trial& trial) {
  return call<Verdict>(HeartbeatRequest{attempt_of(trial)});
}

bool RemoteStudyClient::tell(const Trial& trial, const Outcome& outcome) {
  return call<CountsAnswer>(TellRequest{attempt_of(trial), outcome}).counts;
}

void RemoteStudyClient::release(const Trial& trial) {
  call<DoneAnswer>(ReleaseRequest{attempt_of(trial)});
}

void RemoteStudyClient::control(const Control& control) { call<DoneAnswer>(control); }

Study RemoteStudyClient::study() {
  Study study(*settings_);
  for (int64_t taken = 0;;) {
    const auto part = call<EventsAnswer>(EventsRequest{taken});
    if (part.events.empty()) return study;
    for (const Event& event : part.events) study.apply(event);
    taken += static_cast<int64_t>(part.events.size());
  }
}

}  // namespace gallop::tune

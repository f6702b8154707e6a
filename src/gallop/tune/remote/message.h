#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/tune/event.h"
#include "gallop/tune/study_client.h"

namespace gallop::tune {

/// Requests of workers to a coordinator, and its replies: one JSON object per line, "kind" first.
/// Each request is a call of StudyClient with one reply. All are idempotent, in case a reply is
/// lost: they name the attempt, or a desired state of the study.

/// The first message of every connection.
struct HelloRequest {
  int protocol = 2;
  std::string token;  ///< Authenticates the worker.
};
struct AskRequest {
  std::string worker;
};
struct SetRunFolderRequest {
  Attempt attempt;
  std::string folder;
};
struct ShareRequest {
  Attempt attempt;
  int64_t other = -1;
  int64_t steps = 0;
};
struct ReportRequest {
  Attempt attempt;
  int64_t step = 0;
  double value = 0;
};
struct HeartbeatRequest {
  Attempt attempt;
};
struct TellRequest {
  Attempt attempt;
  Outcome outcome;
};
struct ReleaseRequest {
  Attempt attempt;
};

struct EventsRequest {
  int64_t from = 0;  ///< Index of the first requested event.
};

using Request =
    std::variant<HelloRequest, AskRequest, SetRunFolderRequest, ReportRequest, HeartbeatRequest,
                 TellRequest, ReleaseRequest, Control, ShareRequest, EventsRequest>;

/// Reply to a hello: the study's settings as JSON.
struct WelcomeAnswer {
  std::string settings;
};
/// Reply to a hello with a wrong token: the worker reached the coordinator of another study that
/// now uses this address.
struct UnauthorizedAnswer {};
/// Reply to a tell.
struct CountsAnswer {
  bool counts = false;
};
/// A chunk of the study's event log; empty at the end.
struct EventsAnswer {
  std::vector<Event> events;
};
/// An empty reply.
struct DoneAnswer {};
/// An error that the worker throws.
struct RefusedAnswer {
  ExitCode code = ExitCode::kUsage;
  std::string text;
};

using Answer = std::variant<WelcomeAnswer, Assignment, Verdict, CountsAnswer, DoneAnswer,
                            RefusedAnswer, EventsAnswer, UnauthorizedAnswer>;

constexpr size_t kMostRequestBytes = size_t{1} << 20;
constexpr size_t kMostAnswerBytes = size_t{1} << 26;

/// Serializes a message as a line, without the newline.
std::string to_line(const Request& request);
std::string to_line(const Answer& answer);
/// Parses a line; nothing if it is invalid.
std::optional<Request> parse_request(std::string_view line);
std::optional<Answer> parse_answer(std::string_view line);

}  // namespace gallop::tune

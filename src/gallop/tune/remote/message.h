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

/// What workers ask of a coordinator, and what it answers: one line of JSON a message, "kind"
/// first. Each request is a call of StudyClient and has one answer. None does harm if it comes
/// again, since the answer was lost: they name the attempt that they are about, or how a study is
/// to be.

/// First on every connection.
struct HelloRequest {
  int protocol = 1;
  std::string token;  ///< Proof that the worker may take part.
};
struct AskRequest {
  std::string worker;
};
struct PlaceRequest {
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
struct BeatRequest {
  Attempt attempt;
};
struct TellRequest {
  Attempt attempt;
  Outcome outcome;
};
struct GiveBackRequest {
  Attempt attempt;
};

struct EventsRequest {
  int64_t from = 0;  ///< Number of the first that is wanted.
};

using Request = std::variant<HelloRequest, AskRequest, PlaceRequest, ReportRequest, BeatRequest,
                             TellRequest, GiveBackRequest, Control, ShareRequest, EventsRequest>;

/// To a hello: what the study is, as JSON.
struct WelcomeAnswer {
  std::string settings;
};
/// To a hello without the token: who asked looks for another study's coordinator, which was here.
struct UnauthorizedAnswer {};
/// To a tell.
struct CountsAnswer {
  bool counts = false;
};
/// The study's history, in parts: none where it has no more.
struct EventsAnswer {
  std::vector<Event> events;
};
/// Where there is nothing to say.
struct DoneAnswer {};
/// An error that the worker is to throw.
struct RefusedAnswer {
  ExitCode code = ExitCode::kUsage;
  std::string text;
};

using Answer = std::variant<WelcomeAnswer, Assignment, Verdict, CountsAnswer, DoneAnswer,
                            RefusedAnswer, EventsAnswer, UnauthorizedAnswer>;

constexpr size_t kMostRequestBytes = size_t{1} << 20;
constexpr size_t kMostAnswerBytes = size_t{1} << 26;

/// A line without its end.
std::string to_line(const Request& request);
std::string to_line(const Answer& answer);
/// Nothing for what is no such line, or has values that cannot be.
std::optional<Request> parse_request(std::string_view line);
std::optional<Answer> parse_answer(std::string_view line);

}  // namespace gallop::tune

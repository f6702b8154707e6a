#include "gallop/tune/remote/message.h"

#include <array>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "gallop/config/json_numbers.h"

namespace gallop::tune {

namespace {

using Json = nlohmann::ordered_json;

// In the order of the variant's alternatives.
constexpr std::array kRequests = {"hello", "ask",     "set_run_folder", "report", "heartbeat",
                                  "tell",  "release", "control",        "share",  "events"};
constexpr std::array kAnswers = {"welcome", "assignment", "verdict", "counts",
                                 "done",    "refused",    "events",  "unauthorized"};

// Parses an integer in a range.
template <typename T>
T whole(const Json& json, int64_t least, int64_t most) {
  const bool is_large =
      json.is_number_unsigned() &&
      json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const int64_t value = json.is_number_integer() && !is_large ? json.get<int64_t>() : least - 1;
  if (value < least || value > most) throw DataError("integer out of range");
  return static_cast<T>(value);
}

int64_t count_of(const Json& json) {
  return whole<int64_t>(json, 0, std::numeric_limits<int64_t>::max());
}
int32_t small_of(const Json& json) {
  return whole<int32_t>(json, 0, std::numeric_limits<int32_t>::max());
}
int64_t number_or_none(const Json& json) {
  return whole<int64_t>(json, -1, std::numeric_limits<int64_t>::max());
}

void write(Json& json, const Attempt& attempt) {
  json["trial"] = attempt.trial;
  json["attempt"] = attempt.attempt;
}
Attempt attempt_of(const Json& json) {
  return {count_of(json.at("trial")), small_of(json.at("attempt"))};
}

void write(Json& json, const HelloRequest& hello) {
  json["protocol"] = hello.protocol;
  json["token"] = hello.token;
}
void write(Json& json, const AskRequest& ask) { json["worker"] = ask.worker; }
void write(Json& json, const SetRunFolderRequest& place) {
  write(json, place.attempt);
  json["folder"] = place.folder;
}
void write(Json& json, const ShareRequest& share) {
  write(json, share.attempt);
  json["other"] = share.other;
  json["steps"] = share.steps;
}
void write(Json& json, const ReportRequest& report) {
  write(json, report.attempt);
  json["step"] = report.step;
  json["value"] = config::number_json(report.value);
}
void write(Json& json, const HeartbeatRequest& heartbeat) { write(json, heartbeat.attempt); }
void write(Json& json, const TellRequest& tell) {
  write(json, tell.attempt);
  json["state"] = static_cast<int>(tell.outcome.state);
  json["values"] = config::numbers_json(tell.outcome.values);
  json["limited"] = config::numbers_json(tell.outcome.limited);
  json["message"] = tell.outcome.message;
}
void write(Json& json, const ReleaseRequest& release) { write(json, release.attempt); }

void write(Json& json, const Control& control) {
  json["what"] = static_cast<int>(control.kind);
  json["wanted"] = control.wanted;
  json["reason"] = control.reason;
}

void write(Json& json, const EventsRequest& events) { json["from"] = events.from; }

void write(Json& json, const WelcomeAnswer& welcome) { json["settings"] = welcome.settings; }
void write(Json& json, const Assignment& assignment) {
  const Trial& trial = assignment.trial;
  json["what"] = static_cast<int>(assignment.kind);
  json["trial"] = trial.number;
  json["attempt"] = trial.attempt;
  json["bracket"] = trial.bracket;
  json["point"] = config::numbers_json(trial.point);
  json["parent"] = trial.parent;
  json["last_step"] = trial.last_step;
  Json reports = Json::array();
  for (const Report& report : trial.reports) {
    reports.push_back({report.step, config::number_json(report.reported)});
  }
  json["reports"] = std::move(reports);
  json["started"] = config::number_json(trial.started);
  json["worker"] = trial.worker;
  json["folder"] = trial.folder;
  json["parent_folder"] = assignment.parent_folder;
  json["reason"] = assignment.reason;
}
void write(Json& json, const Verdict& verdict) { json["verdict"] = static_cast<int>(verdict); }
void write(Json& json, const CountsAnswer& answer) { json["counts"] = answer.counts; }
void write(Json& json, const EventsAnswer& answer) {
  Json events = Json::array();
  for (const Event& event : answer.events) events.push_back(to_json(event));
  json["events"] = std::move(events);
}
void write(Json& /*json*/, const DoneAnswer& /*done*/) {}
void write(Json& /*json*/, const UnauthorizedAnswer& /*unauthorized*/) {}
void write(Json& json, const RefusedAnswer& refused) {
  json["code"] = static_cast<int>(refused.code);
  json["text"] = refused.text;
}

// Member by member: g++ 12 destroys members twice if an initializer in braces throws.
Outcome outcome_of(const Json& json) {
  Outcome outcome;
  outcome.state = whole<TrialState>(json.at("state"), static_cast<int>(TrialState::kComplete),
                                    static_cast<int>(TrialState::kFailed));
  outcome.values = config::numbers_of(json, "values");
  outcome.limited = config::numbers_of(json, "limited");
  outcome.message = json.at("message");
  return outcome;
}

Assignment assignment_of(const Json& json) {
  Assignment assignment;
  assignment.kind =
      whole<Assignment::Kind>(json.at("what"), 0, static_cast<int>(Assignment::Kind::kDone));
  assignment.parent_folder = json.at("parent_folder");
  assignment.reason = json.at("reason");
  Trial& trial = assignment.trial;
  trial.number = count_of(json.at("trial"));
  trial.state = TrialState::kRunning;
  trial.attempt = small_of(json.at("attempt"));
  trial.bracket = small_of(json.at("bracket"));
  trial.point = config::numbers_of(json, "point");
  trial.parent = number_or_none(json.at("parent"));
  trial.last_step = count_of(json.at("last_step"));
  for (const Json& report : json.at("reports")) {
    trial.reports.push_back({count_of(report.at(0)), config::number_of(report.at(1))});
  }
  trial.started = config::number_of(json.at("started"));
  trial.worker = json.at("worker");
  trial.folder = json.at("folder");
  return assignment;
}

Request request_of(const Json& json) {
  const std::string kind = json.at("kind");
  if (kind == "hello") {
    return HelloRequest{small_of(json.at("protocol")), json.at("token")};
  }
  if (kind == "ask") return AskRequest{json.at("worker")};
  if (kind == "control") {
    return Control{
        whole<Control::Kind>(json.at("what"), 0, static_cast<int>(Control::Kind::kRetry)),
        count_of(json.at("wanted")), json.at("reason")};
  }
  if (kind == "events") return EventsRequest{count_of(json.at("from"))};
  const Attempt attempt = attempt_of(json);
  if (kind == "set_run_folder") return SetRunFolderRequest{attempt, json.at("folder")};
  if (kind == "share") {
    return ShareRequest{attempt, count_of(json.at("other")), count_of(json.at("steps"))};
  }
  if (kind == "report") {
    return ReportRequest{attempt, count_of(json.at("step")), config::number_of(json.at("value"))};
  }
  if (kind == "heartbeat") return HeartbeatRequest{attempt};
  if (kind == "tell") return TellRequest{attempt, outcome_of(json)};
  if (kind == "release") return ReleaseRequest{attempt};
  throw DataError("unknown request");
}

Answer answer_of(const Json& json) {
  const std::string kind = json.at("kind");
  if (kind == "welcome") return WelcomeAnswer{json.at("settings")};
  if (kind == "assignment") return assignment_of(json);
  if (kind == "verdict") {
    return whole<Verdict>(json.at("verdict"), 0, static_cast<int>(Verdict::kAbandon));
  }
  if (kind == "counts") return CountsAnswer{json.at("counts").get<bool>()};
  if (kind == "events") {
    EventsAnswer answer;
    for (const Json& event : json.at("events")) {
      answer.events.push_back(parse_event(event.get_ref<const std::string&>()));
    }
    return answer;
  }
  if (kind == "done") return DoneAnswer{};
  if (kind == "unauthorized") return UnauthorizedAnswer{};
  if (kind == "refused") {
    return RefusedAnswer{whole<ExitCode>(json.at("code"), static_cast<int>(ExitCode::kInternal),
                                         static_cast<int>(ExitCode::kStopped)),
                         json.at("text")};
  }
  throw DataError("unknown reply");
}

template <typename Message, size_t count>
std::string line_of(const Message& message, const std::array<const char*, count>& kinds) {
  static_assert(count == std::variant_size_v<Message>);
  Json json{{"kind", kinds.at(message.index())}};
  std::visit([&](const auto& one) { write(json, one); }, message);
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

template <typename Message>
std::optional<Message> parsed(std::string_view line, Message (*read)(const Json&)) {
  try {
    return read(Json::parse(line));
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace

std::string to_line(const Request& request) { return line_of(request, kRequests); }

std::string to_line(const Answer& answer) { return line_of(answer, kAnswers); }

std::optional<Request> parse_request(std::string_view line) { return parsed(line, request_of); }

std::optional<Answer> parse_answer(std::string_view line) { return parsed(line, answer_of); }

}  // namespace gallop::tune

#include <cmath>
#include <string_view>

#include "fuzz/fuzz.h"
#include "gallop/tune/remote/message.h"

using namespace gallop::tune;

namespace {

template <typename Message>
void check(const std::optional<Message>& message,
           std::optional<Message> (*parse)(std::string_view)) {
  if (!message) return;
  const std::string line = to_line(*message);
  require(line.find('\n') == std::string::npos);
  const auto again = parse(line);
  require(again && to_line(*again) == line);
}

void check_event(std::string_view text) {
  try {
    const std::string line = to_json(parse_event(text));
    require(line.find('\n') == std::string::npos && to_json(parse_event(line)) == line);
  } catch (const gallop::DataError&) {
    // The expected error.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(parse_request(text), parse_request);
  check(parse_answer(text), parse_answer);
  check_event(text);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const gallop::tune::Attempt attempt{7, 2};
  const Trial trial{.number = 7,
                    .attempt = 2,
                    .point = {0.5, NAN, 3},
                    .last_step = 9,
                    .reports = {{1, 0.5}, {2, -INFINITY}},
                    .started = 1.5e9,
                    .worker = "w",
                    .folder = "runs/7"};
  const auto request = [](const Request& one) { return to_line(one); };
  const auto answer = [](const Answer& one) { return to_line(one); };
  return {request(HelloRequest{.token = "0123456789abcdef"}),
          request(AskRequest{"host:1"}),
          request(SetRunFolderRequest{attempt, "runs/7"}),
          request(ShareRequest{attempt, 3, 100}),
          request(ReportRequest{attempt, 10, NAN}),
          request(HeartbeatRequest{attempt}),
          request(TellRequest{attempt, {.values = {0.5, 1e300}, .limited = {2}, .message = "m"}}),
          request(ReleaseRequest{attempt}),
          answer(WelcomeAnswer{"{\"name\": \"a\"}"}),
          answer(Assignment{.kind = Assignment::Kind::kTrial, .trial = trial, .reason = "r"}),
          answer(Verdict::kPrune),
          answer(CountsAnswer{true}),
          answer(DoneAnswer{}),
          answer(RefusedAnswer{gallop::ExitCode::kUsage, "no"}),
          to_json(Event{.trial = 3, .time = 1.5, .point = {0.5, NAN}, .text = "t"}),
          to_json(Event{.kind = Event::Kind::kFinished,
                        .trial = 3,
                        .state = TrialState::kComplete,
                        .losses = {1},
                        .violations = {-1}})};
}

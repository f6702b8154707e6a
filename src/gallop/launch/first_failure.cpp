#include "gallop/launch/first_failure.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

namespace gallop::launch {

namespace {

const Call* last_call(const RankReport& rank_report) {
  return rank_report.calls.empty() ? nullptr : &rank_report.calls.back();
}

int64_t last_number(const RankReport& rank_report) {
  const Call* const call = last_call(rank_report);
  return call == nullptr ? 0 : call->number;
}

bool has_stopped_as_asked(const ChildEnd& end) {
  return end.signal == 0 && end.exit_code == static_cast<int>(ExitCode::kStopped);
}

bool has_failed(const RankReport& rank_report) {
  return rank_report.end && !rank_report.end->is_good() && !has_stopped_as_asked(*rank_report.end);
}

// Its error only reports that other processes failed or timed out.
bool is_consequence(const RankReport& rank_report) {
  const auto& calls = rank_report.calls;
  return rank_report.end->signal == 0 &&
         std::any_of(calls.begin(), calls.end(),
                     [](const Call& call) { return call.state == Call::State::kFailed; });
}

std::string place_of(const RankReport& rank_report) {
  const Call* const call = last_call(rank_report);
  if (call == nullptr) return "before its first call";
  return fmt::format("at {}, {} call {}, {}", call->place,
                     call->state == Call::State::kDone ? "after" : "in", call->number, call->what);
}

std::string name_of(const RankReport& rank_report, const std::string& where) {
  return fmt::format("rank {} {} (process {})", rank_report.rank, where, rank_report.process);
}

const char* describe_state(char state) {
  switch (state) {
    case 'T': return "is stopped";
    case 'D': return "waits for a device";
    case 't': return "is held by a debugger";
    default: return "does not answer";
  }
}

// The slowest of the processes that others may wait for: a stopped one, otherwise the furthest
// behind.
const RankReport* slowest(const std::vector<RankReport>& rank_reports) {
  const RankReport* found = nullptr;
  const auto is_worse = [](const RankReport& one, const RankReport& other) {
    const bool is_stopped = one.state == 'T', other_is = other.state == 'T';
    return is_stopped != other_is ? is_stopped : last_number(one) < last_number(other);
  };
  for (const RankReport& one : rank_reports) {
    if (!one.end && (found == nullptr || is_worse(one, *found))) found = &one;
  }
  return found;
}

}  // namespace

std::optional<FirstFailure> first_failure(const std::vector<RankReport>& rank_reports,
                                          const std::string& where) {
  const RankReport* waiting = nullptr;
  bool has_one_stopped = false;
  for (const RankReport& one : rank_reports) {
    has_one_stopped |= one.end && has_stopped_as_asked(*one.end);
    if (!has_failed(one)) continue;
    if (!is_consequence(one)) {
      const ChildEnd& end = *one.end;
      return FirstFailure{
          .code = end.signal != 0 ? ExitCode::kDevice : static_cast<ExitCode>(end.exit_code),
          .rank = one.rank,
          .text = fmt::format("{} {} {}", name_of(one, where), end.describe(), place_of(one))};
    }
    if (waiting == nullptr) waiting = &one;
  }
  // Waiting for a process that was stopped during start-up is not a failure of its own.
  if (waiting == nullptr || has_one_stopped) return {};
  const RankReport* const cause = slowest(rank_reports);
  if (cause == nullptr) {
    return FirstFailure{.code = ExitCode::kDevice,
                        .rank = waiting->rank,
                        .text = fmt::format("{} timed out waiting for others {}",
                                            name_of(*waiting, where), place_of(*waiting)),
                        .is_inferred = true};
  }
  return FirstFailure{.code = ExitCode::kDevice,
                      .rank = cause->rank,
                      .text = fmt::format("{} {} {}; rank {} waited for it {}",
                                          name_of(*cause, where), describe_state(cause->state),
                                          place_of(*cause), waiting->rank, place_of(*waiting)),
                      .is_inferred = true};
}

std::string who_stays(const std::vector<RankReport>& rank_reports, const std::string& where) {
  const RankReport* const one = slowest(rank_reports);
  if (one == nullptr) return {};
  return fmt::format("{} {} {}, and others have ended", name_of(*one, where),
                     describe_state(one->state), place_of(*one));
}

std::string describe_calls(const std::vector<RankReport>& rank_reports, double now) {
  std::string text;
  for (const RankReport& one : rank_reports) {
    text += fmt::format("rank {} (process {}) {}\n", one.rank, one.process,
                        one.end ? one.end->describe() : describe_state(one.state));
    for (const Call& call : one.calls) {
      const bool is_done = call.state == Call::State::kDone;
      text += fmt::format("  {:>10.3f} s ago  call {:<8} {:<28} {:<24} {}\n", now - call.began,
                          call.number, call.place, call.what,
                          is_done ? fmt::format("took {:.3f} ms", 1e3 * (call.ended - call.began))
                          : call.state == Call::State::kFailed ? "failed"
                                                               : "under way");
    }
  }
  return text;
}

char state_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  // "100 (name) R 1 ..."; the name may contain parentheses.
  const size_t end_of_name = text.rfind(')');
  return end_of_name != std::string::npos && end_of_name + 2 < text.size() ? text[end_of_name + 2]
                                                                           : '?';
}

}  // namespace gallop::launch

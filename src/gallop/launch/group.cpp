#include "gallop/launch/group.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/affinity.h"
#include "gallop/base/child_process.h"
#include "gallop/base/clock.h"
#include "gallop/base/hardware.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/base/text.h"
#include "gallop/launch/call_log.h"
#include "gallop/launch/first_failure.h"
#include "gallop/launch/reported_error.h"

namespace gallop::launch {

namespace {

constexpr int kPollMilliseconds = 50;
constexpr size_t kLongestLine = 65536;
constexpr std::string_view kBeginOfError = "gallop: ";

using Tell = std::function<void(const std::string& line)>;

ChildCommand command_of_member(const GroupCommand& group, int local_rank,
                               const fs::path& call_logs) {
  ChildCommand command = command_of_rank(group, local_rank, call_logs);
  command.keep_output = group.first_rank + local_rank != 0;
  command.own_group = true;
  command.awaits_start = false;
  return command;
}

/// A process of the group, with the incomplete last line of its output.
class Member {
 public:
  Member(const GroupCommand& group, int local_rank, const fs::path& call_logs)
      : rank_(group.first_rank + local_rank),
        process_(command_of_member(group, local_rank, call_logs)),
        call_logs_(call_logs),
        open_(process_.output() >= 0) {
    if (open_) fcntl(process_.output(), F_SETFL, O_NONBLOCK);
  }

  int rank() const { return rank_; }
  ChildProcess& process() { return process_; }
  int output() const { return open_ ? process_.output() : -1; }

  // Prints the error with which the process has ended. False if the process itself has not printed
  // it.
  bool report_error(const Tell& tell) const {
    for (const std::string& line : error_lines_) tell(line);
    return !error_lines_.empty();
  }

  // Reads all available output.
  void read_lines(const Tell& tell) {
    std::array<char, 4096> part{};
    while (open_) {
      const ssize_t size = read(process_.output(), part.data(), part.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return;
      if (size == 0) open_ = false;
      text_.append(part.data(), static_cast<size_t>(size));
      tell_lines(tell);
    }
  }

 private:
  void tell_lines(const Tell& tell) {
    size_t begin = 0;
    for (size_t end = 0; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      tell_line(text_.substr(begin, end - begin), tell);
    }
    text_.erase(0, begin);
    if (!text_.empty() && (!open_ || text_.size() > kLongestLine)) {
      tell_line(std::exchange(text_, {}), tell);
    }
  }

  void tell_line(const std::string& line, const Tell& tell) {
    const std::string marked = fmt::format("[rank {}] {}", rank_, printable(line));
    const bool is_of_error = !error_lines_.empty() || (line.starts_with(kBeginOfError) &&
                                                       !read_error(call_logs_, rank_).empty());
    if (is_of_error) {
      error_lines_.push_back(marked);
    } else {
      tell(marked);
    }
  }

  int rank_;
  ChildProcess process_;
  fs::path call_logs_;
  bool open_;
  std::string text_;
  std::vector<std::string> error_lines_;  // The last ones of a process that has recorded its error.
};

class Group {
 public:
  Group(const GroupCommand& command, const Tell& tell)
      : all_processes_(command.all_processes()),
        grace_seconds_(command.grace_seconds),
        end_seconds_(command.end_seconds),
        cause_seconds_(command.cause_seconds),
        tell_(tell) {
    for (int i = 0; i < command.processes; ++i) {
      members_.emplace_back(command, i, call_logs_.path());
    }
    ends_.resize(members_.size());
  }

  GroupEnd run(const StopRequest& stop) {
    while (!all_ended()) {
      wait_for_output();
      // One iteration after it is noticed, as the end that caused it may be noticed later.
      if (one_ended_badly()) note_failure();
      note_ends();
      note_who_stays();
      if (stop.requested()) ask_to_stop();
      const bool is_late = asked_at_ && monotonic_seconds() - *asked_at_ > grace_seconds_;
      if (is_late || stop.signal() == SIGKILL) kill_all();
    }
    if (one_ended_badly()) note_failure();
    for (Member& member : members_) member.read_lines(tell_);
    report_errors();
    return std::move(result_);
  }

 private:
  // Processes that read the same invalid recipe all end with the same error. Rank 0 prints its own,
  // and the others leave an error of rank 0 to it; it may have been stopped before it could.
  void report_errors() const {
    const bool has_rank0 = members_.front().rank() == 0;
    std::set<std::string> printed = {""};
    for (const Member& member : members_) {
      const std::string error = read_error(call_logs_.path(), member.rank());
      if (!printed.insert(error).second || member.rank() == 0) continue;
      if (!member.report_error(tell_) && has_rank0) tell_("gallop: " + error);
    }
  }

  bool all_ended() const {
    for (const auto& end : ends_) {
      if (!end) return false;
    }
    return true;
  }

  void wait_for_output() {
    std::vector<pollfd> waits;
    for (const Member& member : members_) {
      waits.push_back({.fd = member.output(), .events = POLLIN, .revents = 0});
    }
    poll(waits.data(), waits.size(), kPollMilliseconds);
    for (Member& member : members_) member.read_lines(tell_);
  }

  void note_ends() {
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      if (!ends_[rank]) ends_[rank] = members_[rank].process().poll();
    }
  }

  bool one_ended_badly() const {
    return std::any_of(ends_.begin(), ends_.end(),
                       [](const auto& end) { return end && !end->is_good(); });
  }

  // Recorded once, as what the others do after being stopped is a consequence.
  void note_failure() {
    if (asked_at_) {
      if (result_.code == ExitCode::kDone) result_.code = ExitCode::kStopped;
      return;
    }
    const std::vector<RankReport> rank_reports = ask_all();
    const auto first = first_failure(rank_reports, where());
    if (first && first->is_inferred && !all_ended()) {
      if (!inferred_at_) inferred_at_ = monotonic_seconds();
      if (monotonic_seconds() - *inferred_at_ < cause_seconds_) return;
    }
    if (first) {
      result_ = {.code = first->code,
                 .first_failure = first->text,
                 .reported_error = read_error(call_logs_.path(), first->rank),
                 .last_calls = describe_calls(rank_reports, monotonic_seconds())};
    } else {
      result_.code = ExitCode::kStopped;
    }
    ask_to_stop();
  }

  // A process that has reached the end with the others has little left to do.
  void note_who_stays() {
    const bool one_is_done =
        std::any_of(ends_.begin(), ends_.end(), [](const auto& end) { return end.has_value(); });
    if (!one_is_done || asked_at_ || all_ended()) return;
    if (!first_end_at_) first_end_at_ = monotonic_seconds();
    if (monotonic_seconds() - *first_end_at_ < end_seconds_) return;
    const std::vector<RankReport> rank_reports = ask_all();
    result_ = {.code = ExitCode::kDevice,
               .first_failure = who_stays(rank_reports, where()),
               .last_calls = describe_calls(rank_reports, monotonic_seconds())};
    ask_to_stop();
  }

  std::string where() const { return fmt::format("of {} on {}", all_processes_, host_name()); }

  std::vector<RankReport> ask_all() {
    std::vector<RankReport> rank_reports;
    for (size_t i = 0; i < members_.size(); ++i) {
      const int rank = members_[i].rank();
      const pid_t process = members_[i].process().id();
      rank_reports.push_back({.rank = rank,
                              .process = process,
                              .end = ends_[i],
                              .state = state_of(process),
                              .calls = read_calls(call_logs_.path(), rank)});
    }
    return rank_reports;
  }

  void ask_to_stop() {
    if (asked_at_) return;
    asked_at_ = monotonic_seconds();
    for (Member& member : members_) member.process().send(SIGTERM);
  }

  void kill_all() {
    for (Member& member : members_) member.process().send(SIGKILL);
  }

  TemporaryFolder call_logs_{fs::temp_directory_path(), kCallLogsPrefix};
  int all_processes_;
  double grace_seconds_, end_seconds_, cause_seconds_;
  const Tell& tell_;
  std::vector<Member> members_;
  std::vector<std::optional<ChildEnd>> ends_;
  std::optional<double> asked_at_, first_end_at_, inferred_at_;
  GroupEnd result_;
};

}  // namespace

ChildCommand command_of_rank(const GroupCommand& group, int local_rank, const fs::path& call_logs) {
  std::map<std::string, std::string> variables = {
      {"RANK", std::to_string(group.first_rank + local_rank)},
      {"WORLD_SIZE", std::to_string(group.all_processes())},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(group.processes)},
      {"GROUP_RANK", std::to_string(group.host_index)},
      {"GROUP_WORLD_SIZE", std::to_string(group.hosts)},
      {"MASTER_ADDR", group.host},
      {"MASTER_PORT", std::to_string(group.port)},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(group.restarts)},
      {kCallLogsVariable, call_logs.string()}};
  variables.insert(group.variables.begin(), group.variables.end());
  return {.program = group.program,
          .arguments = group.arguments,
          .variables = std::move(variables),
          .cores = part_of(side_by_side(cores_given()), local_rank, group.processes)};
}

GroupEnd run_group(const GroupCommand& command, const StopRequest& stop, const Tell& tell) {
  return Group(command, tell).run(stop);
}

}  // namespace gallop::launch

#include "gallop/launch/rendezvous/member.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/text.h"

namespace gallop::launch {

namespace {

// Time for another host's changes to appear on a shared file system.
constexpr double kShownSeconds = 60;

}  // namespace

Member::Member(const JobOptions& options, Join self, Wire& wire, Work& work)
    : options_(options),
      self_(std::move(self)),
      wire_(wire),
      work_(work),
      inquiry_(wire, options.candidates) {}

void Member::take(const Event& event, double now) {
  if (inquiry_.owns(event.link)) return inquiry_.take(event);
  if (!event.message) {
    link_.reset();
    return lose("its connection is closed", now);
  }
  heard_ = now;
  has_heard_ = true;
  take_message(*event.message, now);
}

void Member::take_message(const Message& message, double now) {
  if (const auto* one = std::get_if<Start>(&message)) {
    start(*one, now);
  } else if (const auto* stop = std::get_if<Stop>(&message)) {
    if (phase_ == Phase::kWorking) work_.stop(stop->grace);
  } else if (const auto* alive = std::get_if<Alive>(&message)) {
    if (alive->running) idle_since_ = now;
  } else if (const auto* run = std::get_if<RunAt>(&message)) {
    know_run(run->folder);
    check_run_until_ = now + kShownSeconds;
  } else if (const auto* finish = std::get_if<Finish>(&message)) {
    finish_ = *finish;
    leave();
  } else if (std::holds_alternative<Redirect>(message)) {
    leave();
  }
}

void Member::start(const Start& start, double now) {
  if (phase_ != Phase::kWaiting) return lose("it started processes that are still running", now);
  self_.attempt = start.attempt;
  self_.restarts = start.restarts;
  if (!start.run.empty()) know_run(start.run);
  check_run_until_.reset();
  phase_ = Phase::kWorking;
  if (!is_here_) {
    work_.say(fmt::format("starting {} of {} processes for {}", self_.processes, start.world_size,
                          wire_.describe(candidate_)));
  }
  work_.start(start);
}

void Member::advance(double now, bool is_asked_to_stop) {
  if (end_) return;
  if (!idle_since_) idle_since_ = now;
  if (phase_ == Phase::kWorking || phase_ == Phase::kStopping) watch_work(now);
  if (link_) {
    keep_link(now, is_asked_to_stop);
  } else if (phase_ == Phase::kStopping) {
    if (!finish_ && !is_asked_to_stop) ask(now);
    return;
  } else if (finish_) {
    end_ = finish_;
  } else if (is_asked_to_stop) {
    end_ = Finish{ExitCode::kStopped, ""};
  } else {
    seek(now);
  }
  if (!end_ && phase_ != Phase::kWorking && now - *idle_since_ > options_.wait_seconds) {
    end_ = Finish{ExitCode::kDevice, timeout_reason()};
  }
}

void Member::keep_link(double now, bool is_asked_to_stop) {
  if (now - heard_ > options_.lost_after) {
    return lose(fmt::format("no message for {}", format_duration(options_.lost_after)), now);
  }
  if (is_asked_to_stop && !std::exchange(has_asked_to_leave_, true)) wire_.send(*link_, Leave{});
  if (now < next_sign_) return;
  next_sign_ = now + kSignSeconds;
  wire_.send(*link_, Alive{phase_ == Phase::kWorking});
}

void Member::watch_work(double now) {
  idle_since_ = now;
  const std::string run = work_.run_folder();
  if (!run.empty() && run != self_.run) {
    know_run(run);
    if (link_) wire_.send(*link_, RunAt{run});
  }
  check_run(now);
  std::optional<Ended> ended = work_.ended();
  if (!ended) return;
  if (!trouble_.empty()) *ended = {.code = ExitCode::kUsage, .failure = trouble_};
  ended->attempt = self_.attempt;
  if (link_) wire_.send(*link_, *ended);
  phase_ = link_ ? Phase::kWaiting : Phase::kSeeking;
}

void Member::know_run(const std::string& run) {
  self_.run = run;
  work_.know_run(run);
}

// All hosts must see the same run folder.
void Member::check_run(double now) {
  if (!check_run_until_ || now < next_check_) return;
  next_check_ = now + kSignSeconds;
  const std::string trouble = work_.trouble_with(self_.run);
  if (!trouble.empty() && now < *check_run_until_) return;
  check_run_until_.reset();
  trouble_ = trouble;
  if (!trouble.empty()) work_.stop(options_.grace);
}

void Member::ask(double now) {
  if (inquiry_.is_open() || now < next_question_) return;
  // Name resolution may be slow, and must not delay killing processes.
  if (phase_ == Phase::kSeeking) wire_.look_up();
  inquiry_.begin(std::nullopt, now);
  next_question_ = now + kSignSeconds / 2;
}

void Member::seek(double now) {
  ask(now);
  const auto& answers = inquiry_.answers();
  // A gathering coordinator detects others by itself.
  const bool is_enough = !answers.empty() && now - inquiry_.began() > kAskSeconds / 4;
  if (!is_enough && !inquiry_.is_complete(now)) return;
  const auto best = std::min_element(
      answers.begin(), answers.end(), [](const Inquiry::Answer& a, const Inquiry::Answer& b) {
        const bool a_runs = a.coordinator_phase == CoordinatorPhase::kRunning;
        const bool b_runs = b.coordinator_phase == CoordinatorPhase::kRunning;
        return a_runs != b_runs ? a_runs : a.candidate < b.candidate;
      });
  has_no_coordinator_ = answers.empty();
  const int candidate = has_no_coordinator_ ? -1 : best->candidate;
  inquiry_.end();
  if (!has_no_coordinator_) join(candidate, false, now);
}

bool Member::found_no_coordinator() { return std::exchange(has_no_coordinator_, false); }

void Member::log_no_coordinator() {
  if (std::exchange(has_reported_, true)) return;
  work_.say("waiting for a host of --rdzv to reply: " + candidates());
}

void Member::join(int candidate, bool is_here, double now) {
  candidate_ = candidate;
  is_here_ = is_here;
  link_ = wire_.connect(candidate);
  wire_.send(*link_, self_);
  phase_ = Phase::kWaiting;
  heard_ = now;
  has_heard_ = has_asked_to_leave_ = has_reported_ = false;
}

void Member::lose(const std::string& why, double now) {
  const bool works = phase_ == Phase::kWorking;
  if (has_heard_) {
    work_.say(fmt::format("the coordinator at {} is lost: {}{}", wire_.describe(candidate_), why,
                          works ? "; stopping, and asking the other hosts" : ""));
  }
  if (works) self_.restarts += 1;
  next_question_ = now;
  leave();
}

void Member::leave() {
  if (link_) wire_.close(*link_);
  link_.reset();
  if (phase_ != Phase::kWorking) {
    phase_ = Phase::kSeeking;
    return;
  }
  phase_ = Phase::kStopping;
  work_.stop(std::min(options_.grace, kGraceAfterLoss));
}

std::string Member::timeout_reason() const {
  const std::string limit = format_duration(options_.wait_seconds);
  if (link_) {
    return fmt::format("fewer than {1} hosts joined at {0} within {2}", wire_.describe(candidate_),
                       options_.min_hosts, limit);
  }
  return fmt::format("no host of --rdzv replied within {}: {}", limit, candidates());
}

std::string Member::candidates() const {
  std::vector<std::string> all;
  for (int candidate = 0; candidate < options_.candidates; ++candidate) {
    all.push_back(wire_.describe(candidate));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace gallop::launch

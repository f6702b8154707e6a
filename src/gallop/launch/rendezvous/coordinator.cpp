#include "gallop/launch/rendezvous/coordinator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::launch {

namespace {

// Between the end of the grace period and considering a host lost.
constexpr double kStuckSeconds = 10;

// Invalid usage and bad data fail again after a restart.
bool is_fatal(ExitCode code) { return code == ExitCode::kUsage || code == ExitCode::kData; }

std::string count(int number, const char* one, const char* many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

}  // namespace

std::string describe_hosts(const JobOptions& options) {
  const std::string most = count(options.max_hosts, "host", "hosts");
  return options.min_hosts == options.max_hosts ? most
                                                : fmt::format("{} to {}", options.min_hosts, most);
}

Coordinator::Coordinator(const JobOptions& options, int candidate, Join self, Wire& wire,
                         Work& work)
    : options_(options),
      candidate_(candidate),
      self_(std::move(self)),
      wire_(wire),
      work_(work),
      inquiry_(wire, options.candidates) {
  adopt(self_);
}

CoordinatorPhase Coordinator::coordinator_phase() const {
  if (phase_ != Phase::kGathering) return CoordinatorPhase::kRunning;
  return ready_since_ ? CoordinatorPhase::kReady : CoordinatorPhase::kGathering;
}

void Coordinator::take(const Event& event, double now) {
  if (is_over_) return;
  if (inquiry_.owns(event.link)) {
    inquiry_.take(event);
  } else if (event.message) {
    take_message(event.link, *event.message, now);
  } else {
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].link == event.link) return lose(i, "its connection is closed", now);
    }
  }
}

void Coordinator::take_message(Link link, const Message& message, double now) {
  if (std::holds_alternative<Ask>(message)) {
    wire_.send(link, CoordinatorReply{coordinator_phase()});
    wire_.close(link);
    return;
  }
  if (const auto* one = std::get_if<Join>(&message)) return join(link, *one, now);
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].link == link) return take_from(i, message, now);
  }
  wire_.close(link);
}

void Coordinator::take_from(size_t index, const Message& message, double now) {
  Worker& worker = workers_[index];
  worker.heard = now;
  if (const auto* ended = std::get_if<Ended>(&message)) {
    take_end(worker, *ended, now);
  } else if (const auto* run = std::get_if<RunAt>(&message)) {
    take_run(worker, *run);
  } else if (std::holds_alternative<Leave>(message)) {
    take_leave(index, now);
  }
}

void Coordinator::join(Link link, const Join& join, double now) {
  std::string trouble;
  if (join.protocol != self_.protocol) {
    trouble = "that host and the coordinator have different versions of Gallop";
  } else if (join.command != self_.command) {
    trouble = fmt::format("this host launches '{}', but the coordinator '{}'",
                          printable(join.command), printable(self_.command));
  }
  if (!trouble.empty()) {
    wire_.send(link, Finish{ExitCode::kUsage, trouble});
    return wire_.close(link);
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].about.id != join.id && workers_[i].link != link) continue;
    wire_.close(workers_[i].link);
    lose(i, "it has joined again", now);
    break;
  }
  if (is_over_) return wire_.close(link);
  if (phase_ == Phase::kGathering) adopt(join);
  next_attempt_ = std::max(next_attempt_, join.attempt + 1);
  restarts_ = std::max(restarts_, join.restarts);
  workers_.push_back(
      {.link = link, .about = join, .address = wire_.address_of(link), .heard = now});
  wire_.send(link, Alive{coordinator_phase() == CoordinatorPhase::kRunning});
  if (!run_.empty() && run_ != join.run) wire_.send(link, RunAt{run_});
  work_.say(fmt::format("{} joined, {} of {}", name_of(workers_.back()), hosts(),
                        describe_hosts(options_)));
}

// The member with the most recent attempt knows best where to resume.
void Coordinator::adopt(const Join& join) {
  if (!join.run.empty() && (run_.empty() || join.attempt >= next_attempt_)) run_ = join.run;
  next_attempt_ = std::max(next_attempt_, join.attempt + 1);
  restarts_ = std::max(restarts_, join.restarts);
}

void Coordinator::take_run(const Worker& worker, const RunAt& run) {
  run_ = run.folder;
  for (const Worker& other : workers_) {
    if (other.link != worker.link) wire_.send(other.link, run);
  }
}

void Coordinator::take_end(Worker& worker, const Ended& ended, double now) {
  if (!worker.works || ended.attempt != attempt_) return;
  worker.works = false;
  if (ended.code == ExitCode::kStopped) {
    is_undone_ = true;
    // The user has asked the processes themselves to stop.
    if (reason_ == Reason::kNone) stop(Reason::kUser, options_.grace);
  } else if (ended.code != ExitCode::kDone) {
    is_undone_ = true;
    // Later failures are consequences of the first one, unless they prevent a restart.
    if (failure_.code == ExitCode::kDone || (is_fatal(ended.code) && !is_fatal(failure_.code))) {
      failure_ = {ended.code, fmt::format("{}: {}", name_of(worker), printable(ended.failure))};
      if (!is_fatal(ended.code)) work_.say(failure_.text);
    }
    if (reason_ < Reason::kFailure) stop(Reason::kFailure, options_.grace);
  }
  decide_when_all_ended(now);
}

void Coordinator::take_leave(size_t index, double now) {
  if (phase_ == Phase::kGathering) return finish(ExitCode::kStopped, "");
  if (workers_[index].is_chosen) {
    stop(Reason::kUser, options_.grace);
    return decide_when_all_ended(now);
  }
  // It only waits for a place in the next attempt.
  const Link link = workers_[index].link;
  workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(index));
  wire_.send(link, Finish{ExitCode::kStopped, ""});
  wire_.close(link);
}

void Coordinator::lose(size_t index, const std::string& why, double now) {
  const Worker lost = workers_[index];
  workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(index));
  const std::string text = fmt::format("{} is lost: {}", name_of(lost), why);
  work_.say(text);
  if (!lost.works) return;
  is_undone_ = true;
  if (failure_.code == ExitCode::kDone) failure_ = {ExitCode::kDevice, text};
  stop(Reason::kFailure, std::min(options_.grace, kGraceAfterLoss));
  decide_when_all_ended(now);
}

void Coordinator::advance(double now) {
  if (is_over_) return;
  drop_silent(now);
  drop_stuck(now);
  if (is_over_) return;
  send_signs(now);
  if (phase_ == Phase::kGathering) gather(now);
  if (phase_ == Phase::kRunning) consider_growth(now);
}

void Coordinator::drop_silent(double now) {
  for (size_t i = workers_.size(); i-- > 0 && !is_over_;) {
    if (now - workers_[i].heard <= options_.lost_after) continue;
    wire_.close(workers_[i].link);
    lose(i, fmt::format("no message for {}", format_duration(options_.lost_after)), now);
    i = std::min(i, workers_.size());
  }
}

// A process that waits for an unreachable file server survives even SIGKILL.
void Coordinator::drop_stuck(double now) {
  if (is_over_ || phase_ != Phase::kStopping) {
    stopping_since_.reset();
    return;
  }
  if (!stopping_since_) stopping_since_ = now;
  if (now - *stopping_since_ <= options_.grace + kStuckSeconds) return;
  stopping_since_ = now;
  const auto stuck =
      std::find_if(workers_.begin(), workers_.end(), [](const Worker& one) { return one.works; });
  if (stuck == workers_.end()) return;
  wire_.close(stuck->link);
  lose(static_cast<size_t>(stuck - workers_.begin()), "its processes did not end", now);
}

void Coordinator::send_signs(double now) {
  if (now < next_sign_) return;
  next_sign_ = now + kSignSeconds;
  for (const Worker& worker : workers_) {
    wire_.send(worker.link, Alive{coordinator_phase() == CoordinatorPhase::kRunning});
  }
}

void Coordinator::gather(double now) {
  if (hosts() < options_.min_hosts) {
    ready_since_.reset();
    is_clear_ = false;
  } else if (!ready_since_) {
    ready_since_ = now;
    is_clear_ = options_.candidates == 1;
    next_question_ = now;
    inquiry_.begin(candidate_, now);
    asked_when_ready_ = true;
  }
  ask_others(now);
  if (is_over_ || !ready_since_ || !is_clear_) return;
  const bool is_complete = hosts() >= options_.max_hosts;
  if (is_complete || now - *ready_since_ >= options_.join_seconds) begin();
}

void Coordinator::ask_others(double now) {
  if (!inquiry_.is_open() && now >= next_question_) {
    inquiry_.begin(candidate_, now);
    asked_when_ready_ = ready_since_.has_value();
    next_question_ = now + kSignSeconds;
  }
  bool is_other_ready = false;
  for (const Inquiry::Answer& answer : inquiry_.answers()) {
    if (answer.coordinator_phase == CoordinatorPhase::kRunning || answer.candidate < candidate_) {
      return hand_over(wire_.describe(answer.candidate));
    }
    // It is training, or will hand over its members to this one.
    is_other_ready = is_other_ready || answer.coordinator_phase == CoordinatorPhase::kReady;
  }
  if (!inquiry_.is_complete(now)) return;
  inquiry_.end();
  is_clear_ = asked_when_ready_ && ready_since_ && !is_other_ready;
}

void Coordinator::hand_over(const std::string& where) {
  work_.say(fmt::format("{} coordinates", where));
  for (const Worker& worker : workers_) {
    wire_.send(worker.link, Redirect{});
    wire_.close(worker.link);
  }
  wire_.stop_listening();
  is_over_ = true;
}

void Coordinator::begin() {
  if (restarts_ > options_.max_restarts) {
    return finish(
        failure_.code == ExitCode::kDone ? ExitCode::kDevice : failure_.code,
        fmt::format("restarted {} times; --max-restarts allows no more", options_.max_restarts));
  }
  // The host of the store first, others in the order in which they joined.
  std::stable_partition(workers_.begin(), workers_.end(),
                        [&](const Worker& one) { return one.about.id == self_.id; });
  Start start{.attempt = next_attempt_++,
              .restarts = restarts_,
              .world_size = 0,
              .hosts = std::min(hosts(), options_.max_hosts),
              .run = run_};
  attempt_ = start.attempt;
  work_.serve_store(start);
  for (int i = 0; i < start.hosts; ++i) {
    start.world_size += workers_[static_cast<size_t>(i)].about.processes;
  }
  work_.say(describe(start));
  for (int i = 0; i < hosts(); ++i) {
    Worker& worker = workers_[static_cast<size_t>(i)];
    worker.is_chosen = worker.works = i < start.hosts;
    if (!worker.is_chosen) continue;
    start.host_index = i;
    wire_.send(worker.link, start);
    start.first_rank += worker.about.processes;
  }
  phase_ = Phase::kRunning;
  reason_ = Reason::kNone;
  is_undone_ = false;
  failure_ = {};
  grow_at_.reset();
  ready_since_.reset();
}

// In the order of ranks.
std::string Coordinator::describe(const Start& start) {
  std::vector<std::string> names;
  for (int i = 0; i < start.hosts; ++i) {
    names.push_back(name_of(workers_[static_cast<size_t>(i)]));
  }
  std::string text =
      fmt::format("starting {} on {}, {}", count(start.world_size, "process", "processes"),
                  count(start.hosts, "host", "hosts"), join_names(names, "and"));
  if (start.attempt == 0) return text;
  text += ", again";
  if (restarts_ > reported_restarts_) {
    text += fmt::format(" ({} of {})", restarts_, options_.max_restarts);
  }
  reported_restarts_ = restarts_;
  return text + (run_.empty() ? ", from the beginning"
                              : ", from the newest checkpoint of " + printable(run_));
}

void Coordinator::consider_growth(double now) {
  const auto chosen = static_cast<int>(std::count_if(
      workers_.begin(), workers_.end(), [](const Worker& one) { return one.is_chosen; }));
  const int more = std::min(options_.max_hosts, hosts()) - chosen;
  // If some processes have finished, the others will finish, too.
  if (more <= 0 || working() < chosen) {
    grow_at_.reset();
    return;
  }
  if (!grow_at_) grow_at_ = now + options_.join_seconds;
  if (hosts() < options_.max_hosts && now < *grow_at_) return;
  work_.say(fmt::format("{} more: all stop after this step, save, and continue together",
                        count(more, "host", "hosts")));
  stop(Reason::kGrowth, options_.grace);
}

void Coordinator::stop(Reason reason, double grace) {
  reason_ = std::max(reason_, reason);
  phase_ = Phase::kStopping;
  for (const Worker& worker : workers_) {
    if (worker.works) wire_.send(worker.link, Stop{grace});
  }
}

int Coordinator::working() const {
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(), [](const Worker& one) { return one.works; }));
}

void Coordinator::decide_when_all_ended(double now) {
  if (is_over_ || phase_ == Phase::kGathering || working() > 0) return;
  if (is_fatal(failure_.code)) return finish(failure_.code, failure_.text);
  if (!is_undone_) return finish(ExitCode::kDone, "");
  if (reason_ == Reason::kUser) return finish(ExitCode::kStopped, "");
  if (reason_ == Reason::kFailure) restarts_ += 1;
  if (hosts() >= options_.min_hosts || restarts_ > options_.max_restarts) return begin();
  phase_ = Phase::kGathering;
  next_question_ = now;
  work_.say(fmt::format("{} left; at least {} required: waiting for more",
                        count(hosts(), "host is", "hosts are"), options_.min_hosts));
}

void Coordinator::finish(ExitCode code, const std::string& text) {
  for (const Worker& worker : workers_) {
    wire_.send(worker.link, Finish{code, text});
    wire_.close(worker.link);
  }
  wire_.stop_listening();
  is_over_ = true;
}

std::string Coordinator::name_of(const Worker& worker) {
  return fmt::format("{} ({})", printable(worker.about.host), worker.address);
}

}  // namespace gallop::launch

#include "gallop/app/optimize/paced_training.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/probe_child.h"
#include "gallop/app/tune/output_lines.h"
#include "gallop/base/clock.h"
#include "gallop/base/text.h"
#include "gallop/launch/group.h"
#include "gallop/optimize/experiment_json.h"

namespace gallop::app {

namespace {

constexpr int kLookMilliseconds = 20;
// Complete lines of a turn, at least.
constexpr size_t kLines = 3;

ChildCommand observed(ChildCommand command) {
  command.input = std::string();
  command.keep_output = true;
  command.own_group = true;
  command.with_warden = true;
  return command;
}

}  // namespace

/// One of the processes.
class PacedTraining::Rank {
 public:
  Rank(ChildCommand command, const fs::path& output)
      : child_(observed(std::move(command))), lines_(child_.output(), output) {}

  /// Calls `function` with each line that arrives within this time. False once it has ended.
  template <typename Function>
  bool read(int milliseconds, const Function& function) {
    const bool is_open = lines_.wait(std::chrono::milliseconds(milliseconds));
    const auto take = [&](std::string_view line) {
      if (!line.empty() && !function(line)) last_line_ = line;
    };
    lines_.each_line(take);
    if (is_open) return true;
    lines_.last_line(take);
    end_ = child_.wait();
    return false;
  }

  void send(int signal) { child_.send(signal); }

  /// Nothing before read() has returned false.
  const std::optional<ChildEnd>& end() const { return end_; }
  /// In one line.
  std::string failure() const {
    return last_line_.empty() ? "it " + end_->describe() : printable(error_line(last_line_));
  }
  /// The process that explains why all have ended has the highest one: an error of another device
  /// is often that a process is gone, and a rank that repeats an error of rank 0 has no output.
  int rating() const {
    if (!end_) return 0;
    const bool is_of_device = end_->exit_code == static_cast<int>(ExitCode::kDevice);
    return 1 + (last_line_.empty() ? 0 : 1) + (is_of_device ? 0 : 2);
  }

 private:
  ChildProcess child_;
  OutputLines lines_;
  std::string last_line_;  // That was not accepted.
  std::optional<ChildEnd> end_;
};

PacedTraining::PacedTraining(const PacedCommand& command, const fs::path& output,
                             const StopRequest& stop)
    : stop_(stop) {
  start(command, output);
  while (intervals_.empty() && read(kLookMilliseconds)) {
  }
  if (failure_.empty()) send(SIGSTOP);
}

PacedTraining::~PacedTraining() = default;

void PacedTraining::start(const PacedCommand& command, const fs::path& output) {
  if (command.processes == 1) {
    ranks_.push_back(std::make_unique<Rank>(ChildCommand{.arguments = command.arguments}, output));
    return;
  }
  // Without a launcher in between, whose own processes could not all be suspended.
  launch::GroupCommand group{.arguments = command.arguments, .processes = command.processes};
  store_.emplace(group.host, 0);
  sharing_.emplace(1);
  group.port = store_->port();
  group.variables = sharing_->variables();
  for (int rank = 0; rank < command.processes; ++rank) {
    fs::path file = output;
    if (rank > 0) file.replace_extension(fmt::format("rank-{}.log", rank));
    ranks_.push_back(std::make_unique<Rank>(launch::command_of_rank(group, rank, {}), file));
  }
}

bool PacedTraining::read(int milliseconds) {
  if (stop_.requested()) throw optimize::Stopped();
  bool all_run = true;
  for (const auto& rank : ranks_) {
    const int patience = rank == ranks_.front() ? milliseconds : 0;
    all_run &= rank->read(patience, [this](std::string_view line) { return take(line); });
  }
  if (all_run) return true;
  const auto cause =
      std::max_element(ranks_.begin(), ranks_.end(),
                       [](const auto& a, const auto& b) { return a->rating() < b->rating(); });
  failure_ = (*cause)->failure();
  return false;
}

bool PacedTraining::take(std::string_view line) {
  const auto json = optimize::Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  if (json.contains("settings")) {
    settings_ = optimize::settings_of(json.at("settings"));
    return true;
  }
  std::vector<double> losses;  // Those that are not finite are null.
  for (const auto& loss : json.at("losses")) {
    losses.push_back(loss.is_number() ? loss.get<double>()
                                      : std::numeric_limits<double>::quiet_NaN());
  }
  intervals_.push_back({.begin = json.at("begin").get<double>(),
                        .end = json.at("end").get<double>(),
                        .steps = static_cast<double>(losses.size()),
                        .joules = json.at("joules").get<double>()});
  if (json.at("training").get<int64_t>() == 0) {
    losses_.insert(losses_.end(), losses.begin(), losses.end());
  }
  peak_bytes_ = json.at("peak_bytes").get<int64_t>();
  energy_method_ = json.at("energy_method").get<std::string>();
  return true;
}

void PacedTraining::send(int signal) {
  for (const auto& rank : ranks_) rank->send(signal);
}

PacedTurn PacedTraining::turn(double seconds) {
  PacedTurn turn;
  // What is left of earlier turns.
  read(0);
  if (!failure_.empty()) return turn;
  intervals_.clear();
  const double begin = monotonic_seconds();
  const auto complete = [&] {
    return static_cast<size_t>(
        std::count_if(intervals_.begin(), intervals_.end(),
                      [&](const Interval& one) { return one.begin >= begin; }));
  };
  send(SIGCONT);
  while (monotonic_seconds() - begin < seconds || complete() < kLines) {
    if (!read(kLookMilliseconds)) return turn;
  }
  send(SIGSTOP);
  // One that was interrupted by the pause before it counts for nothing.
  for (const Interval& one : intervals_) {
    if (one.begin < begin) continue;
    turn.steps += one.steps;
    turn.seconds += one.end - one.begin;
    turn.joules += one.joules;
  }
  return turn;
}

double PacedTraining::seconds_of_line() const {
  double seconds = 0;
  for (const Interval& one : intervals_) seconds = std::max(seconds, one.end - one.begin);
  return seconds;
}

}  // namespace gallop::app

#include "gallop/app/optimize/paced_training.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <nlohmann/json.hpp>

#include "gallop/app/probe_child.h"
#include "gallop/base/clock.h"
#include "gallop/base/text.h"
#include "gallop/optimize/experiment_json.h"

namespace gallop::app {

namespace {

constexpr int kLookMilliseconds = 20;
// Complete lines of a turn, at least.
constexpr size_t kLines = 3;

ChildCommand command_of(const std::vector<std::string>& arguments) {
  return {.arguments = arguments,
          .input = std::string(),
          .keep_output = true,
          .own_group = true,
          .with_warden = true};
}

}  // namespace

PacedTraining::PacedTraining(const std::vector<std::string>& arguments, const fs::path& output,
                             const StopRequest& stop)
    : stop_(stop), child_(command_of(arguments)), lines_(child_.output(), output) {
  while (intervals_.empty() && read(kLookMilliseconds)) {
  }
  if (failure_.empty()) suspend();
}

bool PacedTraining::read(int milliseconds) {
  if (stop_.requested()) throw optimize::Stopped();
  const bool is_open = lines_.wait(std::chrono::milliseconds(milliseconds));
  lines_.each_line([&](std::string_view line) { take(line); });
  if (is_open) return true;
  lines_.last_line([&](std::string_view line) { take(line); });
  const ChildEnd end = child_.wait();
  failure_ =
      last_line_.empty() ? "it " + end.describe() : printable(error_line(std::move(last_line_)));
  return false;
}

void PacedTraining::take(std::string_view line) {
  if (line.empty()) return;
  const auto json = optimize::Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    last_line_ = line;
    return;
  }
  if (json.contains("settings")) {
    settings_ = optimize::settings_of(json.at("settings"));
    return;
  }
  const auto losses = json.at("losses").get<std::vector<double>>();
  intervals_.push_back({.begin = json.at("begin").get<double>(),
                        .end = json.at("end").get<double>(),
                        .steps = static_cast<double>(losses.size()),
                        .joules = json.at("joules").get<double>()});
  if (json.at("training").get<int64_t>() == 0) {
    losses_.insert(losses_.end(), losses.begin(), losses.end());
  }
  peak_bytes_ = json.at("peak_bytes").get<int64_t>();
  energy_method_ = json.at("energy_method").get<std::string>();
}

void PacedTraining::resume() { child_.send(SIGCONT); }
void PacedTraining::suspend() { child_.send(SIGSTOP); }

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
  resume();
  while (monotonic_seconds() - begin < seconds || complete() < kLines) {
    if (!read(kLookMilliseconds)) return turn;
  }
  suspend();
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

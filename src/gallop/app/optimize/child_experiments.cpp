#include "gallop/app/optimize/child_experiments.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/app/optimize/paced_training.h"
#include "gallop/app/probe_child.h"
#include "gallop/base/affinity.h"
#include "gallop/base/child_process.h"
#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/optimize/experiment_json.h"
#include "gallop/track/log.h"
#include "gallop/track/run_folder.h"

namespace gallop::app {

namespace {

using optimize::Comparison;
using optimize::Estimate;

constexpr int64_t kLeastRounds = 3, kMostRounds = 15;
constexpr double kLeastTurn = 0.6;
// A turn has at least this many lines of the slower training.
constexpr double kLinesOfTurn = 5;
// An interval this narrow is not measured further.
constexpr double kNarrow = 1.01;
// Losses are averaged over blocks, as those of successive steps are not independent.
constexpr size_t kBlocks = 8;

// Whether b has losses that are not finite in the second half of the steps of both, where a has
// not.
bool diverges(const std::vector<double>& a, const std::vector<double>& b) {
  const size_t common = std::min(a.size(), b.size());
  for (size_t i = common / 2; i < common; ++i) {
    if (std::isfinite(a[i]) && !std::isfinite(b[i])) return true;
  }
  return false;
}

// (b - a) / a in the mean over the second half of the steps of both. None if some are not finite.
std::optional<Estimate> loss_change(const std::vector<double>& a, const std::vector<double>& b,
                                    int64_t& steps) {
  const size_t common = std::min(a.size(), b.size()), first = common / 2;
  const size_t block = (common - first) / kBlocks;
  if (block == 0) return std::nullopt;
  steps = static_cast<int64_t>(block * kBlocks);
  double mean = 0;
  std::vector<double> differences;
  for (size_t i = 0; i < kBlocks; ++i) {
    double difference = 0;
    for (size_t j = first + i * block; j < first + (i + 1) * block; ++j) {
      difference += (b[j] - a[j]) / static_cast<double>(block);
      mean += std::abs(a[j]) / static_cast<double>(steps);
    }
    differences.push_back(difference);
  }
  if (!(mean > 0) || !std::isfinite(mean)) return std::nullopt;
  for (double& one : differences) one /= mean;
  return optimize::mean_of(differences);
}

// The rounds of a comparison.
class Rounds {
 public:
  Rounds(PacedTraining& base, PacedTraining& changed) : base_(base), changed_(changed) {}

  // False if one of them has ended.
  bool add(double seconds) {
    // Which one is first alternates, so that a drift of the machine favors neither.
    const bool is_base_first = speedups_.size() % 2 == 0;
    PacedTurn first = (is_base_first ? base_ : changed_).turn(seconds);
    PacedTurn second = (is_base_first ? changed_ : base_).turn(seconds);
    if (!base_.failure().empty() || !changed_.failure().empty()) return false;
    if (!is_base_first) std::swap(first, second);
    const auto samples = [](const PacedTraining& training) {
      return static_cast<double>(training.settings().batch_size);
    };
    base_rates_.push_back(first.steps_per_second() * samples(base_));
    changed_rates_.push_back(second.steps_per_second() * samples(changed_));
    speedups_.push_back(changed_rates_.back() / base_rates_.back());
    base_per_joule_.push_back(first.steps_per_joule() * samples(base_));
    changed_per_joule_.push_back(second.steps_per_joule() * samples(changed_));
    return true;
  }

  Estimate speedup() const { return optimize::ratio_of(speedups_); }

  std::optional<Estimate> energy_gain() const {
    std::vector<double> gains;
    for (size_t i = 0; i < base_per_joule_.size(); ++i) {
      if (base_per_joule_[i] <= 0 || changed_per_joule_[i] <= 0) return std::nullopt;
      gains.push_back(changed_per_joule_[i] / base_per_joule_[i]);
    }
    return optimize::ratio_of(gains);
  }

  optimize::Speed speed_of_base() const { return speed(base_, base_rates_, base_per_joule_); }
  optimize::Speed speed_of_changed() const {
    return speed(changed_, changed_rates_, changed_per_joule_);
  }

 private:
  static optimize::Speed speed(const PacedTraining& training, const std::vector<double>& rates,
                               const std::vector<double>& per_joule) {
    const double samples_per_joule = optimize::ratio_of(per_joule).value;
    const bool has_energy = std::isfinite(samples_per_joule) && samples_per_joule > 0;
    return {.samples_per_second = optimize::ratio_of(rates).value,
            .joules_per_sample = has_energy ? 1 / samples_per_joule : 0,
            .peak_bytes = training.peak_bytes()};
  }

  PacedTraining& base_;
  PacedTraining& changed_;
  std::vector<double> speedups_, base_rates_, changed_rates_, base_per_joule_, changed_per_joule_;
};

// The last line that is JSON, among notes.
optimize::Json json_of_output(const std::string& text) {
  const size_t line = text.rfind("\n{");
  if (line == std::string::npos && !text.starts_with('{')) {
    throw InternalError("a process ended without printing a result");
  }
  const size_t begin = line == std::string::npos ? 0 : line + 1;
  return optimize::Json::parse(text.substr(begin, text.find('\n', begin) - begin));
}

}  // namespace

ChildExperiments::ChildExperiments(ExperimentPlace place, const StopRequest& stop,
                                   std::function<void(const std::string&)> note)
    : place_(std::move(place)), stop_(stop), note_(std::move(note)), begin_(monotonic_seconds()) {
  make_folders(place_.folder / "runs");
  make_folders(place_.folder / "output");
}

void ChildExperiments::set(std::vector<std::string> options, const std::string& metric) {
  place_.options = std::move(options);
  place_.metric = metric;
}

double ChildExperiments::seconds() const { return monotonic_seconds() - begin_; }

std::vector<std::string> ChildExperiments::arguments(
    const std::vector<std::string>& command, const std::vector<std::string>& options) const {
  std::vector<std::string> all = command;
  const auto resolved = optimize::recipe_options(optimize::with(place_.options, options));
  all.insert(all.end(), resolved.begin(), resolved.end());
  return all;
}

std::vector<std::string> ChildExperiments::launched(const std::vector<std::string>& command,
                                                    const std::vector<std::string>& options) const {
  const int64_t processes = optimize::processes_of(options);
  std::vector<std::string> all;
  if (processes > 1) all = {"launch", "-n", std::to_string(processes), "--max-restarts", "0"};
  const std::vector<std::string> own = arguments(command, options);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

ChildExperiments::Result ChildExperiments::run(const std::vector<std::string>& arguments,
                                               const std::vector<int>& cores) const {
  const ChildRun run = run_to_end({.arguments = arguments,
                                   .input = std::string(),
                                   .cores = cores,
                                   .own_group = true,
                                   .with_warden = true},
                                  {.stop = [this] { return stop_.requested(); }});
  if (run.cause == ChildRun::Cause::kStopped || stop_.requested()) throw optimize::Stopped();
  if (run.is_good()) return {.is_good = true, .text = run.output};
  const std::string line = printable(error_line(run.output));
  return {
      .is_good = false,
      .code = run.end.signal == 0 ? static_cast<ExitCode>(run.end.exit_code) : ExitCode::kDevice,
      .text = line.empty() ? "it " + run.end.describe() : line};
}

fs::path ChildExperiments::output_file() {
  return place_.folder / "output" / fmt::format("{:04}.log", ++outputs_);
}

optimize::Settings ChildExperiments::settings(const std::vector<std::string>& options) {
  // What depends on the cores is that of one of the processes.
  const auto processes = static_cast<int>(optimize::processes_of(options));
  std::vector<int> cores;
  if (processes > 1) cores = part_of(side_by_side(cores_given()), 0, processes);
  const Result result =
      run(arguments({"optimize", place_.recipe, "--measure", "settings"}, options), cores);
  if (!result.is_good) throw Error(result.code, result.text);
  optimize::Settings settings = optimize::settings_of(json_of_output(result.text).at("settings"));
  settings.processes = processes;
  return settings;
}

std::vector<optimize::Prediction> ChildExperiments::predict(
    const std::vector<std::string>& options) {
  const Result result = run(launched({"profile", place_.recipe, "--json"}, options));
  if (!result.is_good) {
    note_("there are no predictions: " + result.text);
    return {};
  }
  return optimize::predictions_of(json_of_output(result.text).at("advice"));
}

Comparison ChildExperiments::compare(const std::vector<std::string>& base,
                                     const std::vector<std::string>& changed) {
  const auto command_with = [&](const std::vector<std::string>& options) {
    return PacedCommand{
        .arguments = arguments({"optimize", place_.recipe, "--measure", "steps"}, options),
        .processes = static_cast<int>(optimize::processes_of(options))};
  };
  PacedTraining first(command_with(base), output_file(), stop_);
  if (!first.failure().empty()) throw DataError(first.failure());
  PacedTraining second(command_with(changed), output_file(), stop_);
  Comparison result{.failure = second.failure()};
  if (!result.failure.empty()) return result;
  const double turn = std::max(
      kLeastTurn, kLinesOfTurn * std::max(first.seconds_of_line(), second.seconds_of_line()));
  Rounds rounds(first, second);
  for (int64_t round = 1; round <= kMostRounds; ++round) {
    if (!rounds.add(turn)) {
      if (!first.failure().empty()) throw DataError(first.failure());
      result.failure = second.failure();
      return result;
    }
    if (round < kLeastRounds) continue;
    if (place_.goal == optimize::Goal::kMemory) break;
    const auto energy = rounds.energy_gain();
    const Estimate gain =
        place_.goal == optimize::Goal::kEnergy && energy ? *energy : rounds.speedup();
    const bool is_clear = gain.low > place_.worthwhile || gain.high < place_.worthwhile;
    const bool is_narrow = gain.high < kNarrow * gain.low;
    if (is_clear && (is_narrow || round >= 2 * kLeastRounds || gain.high < 1)) break;
  }
  result.base = rounds.speed_of_base();
  result.changed = rounds.speed_of_changed();
  result.speedup = rounds.speedup();
  result.energy_gain = rounds.energy_gain();
  result.energy_method = first.energy_method();
  if (diverges(first.losses(), second.losses())) {
    result.failure = "its loss is not finite, while that of the recipe is";
    return result;
  }
  if (first.settings().batch_size == second.settings().batch_size) {
    result.loss_change = loss_change(first.losses(), second.losses(), result.compared_steps);
  }
  return result;
}

optimize::TrainingResult ChildExperiments::train(const std::vector<std::string>& options,
                                                 int64_t seed) {
  const auto changed = optimize::with(options, {fmt::format("train.seed={}", seed)});
  // A search that continues finds the run that was interrupted by its options.
  const std::string name =
      fmt::format("{:016x}", xxh3_64(fmt::format("{}", fmt::join(changed, "\n"))));
  const fs::path runs = place_.folder / "runs";
  const Result result = run(launched(
      {"train", place_.recipe, "--runs", runs.string(), "--name", name, "--continue", "--quiet"},
      changed));
  optimize::TrainingResult trained{.folder = (runs / name).string()};
  if (!result.is_good) {
    trained.failure = result.text;
    return trained;
  }
  const track::Log log = track::read_log(runs / name / "metrics.log");
  for (const track::Record& record : log.current()) {
    const auto seconds = record.values.find("training_seconds");
    if (seconds == record.values.end()) continue;
    trained.training_seconds = seconds->second;
    const auto metric = record.values.find(place_.metric);
    if (record.kind != "evaluation" || metric == record.values.end()) continue;
    trained.evaluations.push_back({.epochs = record.values.at("epoch"), .metric = metric->second});
  }
  if (trained.evaluations.empty()) {
    trained.failure = fmt::format("{} was not evaluated", place_.metric);
  }
  return trained;
}

std::optional<double> ChildExperiments::find_lr(const std::vector<std::string>& options) {
  const Result result = run(launched({"find-lr", place_.recipe, "--json"}, options));
  if (!result.is_good) {
    note_("no learning rate was found: " + result.text);
    return std::nullopt;
  }
  const optimize::Json json = json_of_output(result.text);
  const auto lr = json.find("lr");
  if (lr == json.end() || !lr->is_number()) return std::nullopt;
  return lr->get<double>();
}

}  // namespace gallop::app

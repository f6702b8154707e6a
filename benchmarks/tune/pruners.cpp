// Measures the results of pruners within a number of training steps; `run_pruners` compares them
// with Optuna.
//
//   bench_tune_pruners quality STEPS WORKERS SEED... -- SAMPLER PRUNER
//     a line for each seed: {"seed": 1, "loss": L, "trials": N}; sampler and pruner as in a sweep
//   bench_tune_pruners speed TRIALS REPORTS -- PRUNER
//     {"report_us": the mean, "should_stop_us": the mean}
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/tune/chosen.h"
#include "gallop/tune/storage/memory.h"
#include "gallop/tune/tuner.h"

namespace {

using namespace gallop;
using namespace gallop::tune;
using Json = nlohmann::ordered_json;
using Args = std::vector<std::string>;

constexpr int64_t kWhole = 81;  // Steps of a complete trial.
constexpr double kNoise = 0.02;

/// The loss after a step: a power law. The fastest curves do not end best, so that curves cross.
double curve(const Point& point, int64_t step) {
  double end = 0;
  for (size_t i = 0; i < point.size(); ++i) {
    end += std::pow(point[i] - 0.3 - 0.1 * static_cast<double>(i), 2);
  }
  return end + (1 + point[1]) * std::pow(static_cast<double>(step), -0.2 - 0.8 * point[0]);
}

StudySettings settings_of(uint64_t seed) {
  std::vector<Parameter> parameters;
  for (const char* name : {"a", "b", "c", "d"}) parameters.push_back({name, Interval{}});
  return {.name = "benchmark",
          .seed = seed,
          .space = Space(parameters, {}),
          .objectives = {{.metric = "loss"}},
          .trials = std::numeric_limits<int32_t>::max()};
}

/// Workers that train one step each, in turn.
class Workers {
 public:
  Workers(const StudySettings& settings, size_t count) : held_(count) {
    const auto clock = [] { return 0.0; };
    auto storage = std::make_unique<MemoryStorage>(settings, std::vector<Event>(), clock);
    tuner_ = std::make_unique<Tuner>(std::move(storage), clock);
  }

  void run(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      const size_t worker = static_cast<size_t>(i) % held_.size();
      auto& trial = held_[worker];
      if (!trial) trial = tuner_->ask(std::to_string(worker)).trial;
      step(trial);
    }
  }

  /// The noiseless loss at the end of a complete training of the presumed best: the complete trial
  /// with the smallest loss, or if there is none, the trial with the smallest report.
  double found() const {
    const Study& study = tuner_->study();
    if (const auto best = study.best()) return whole(*best);
    double least = std::numeric_limits<double>::infinity();
    int64_t best = 0;
    for (const Trial& trial : study.trials()) {
      if (trial.reports.empty() || trial.reports.back().loss >= least) continue;
      least = trial.reports.back().loss;
      best = trial.number;
    }
    return whole(best);
  }
  size_t trials() const { return tuner_->study().trials().size(); }

 private:
  double whole(int64_t number) const {
    return curve(tuner_->study().trials()[static_cast<size_t>(number)].point, kWhole);
  }

  void step(std::optional<Trial>& trial) {
    const auto& reports = tuner_->study().trials()[static_cast<size_t>(trial->number)].reports;
    const int64_t step = reports.empty() ? 1 : reports.back().step + 1;
    Random random(tuner_->settings().seed, trial->number, 1000 + static_cast<uint32_t>(step));
    const double loss = curve(trial->point, step) + kNoise * random.normal();
    const bool is_pruned = tuner_->report(*trial, step, loss) == Verdict::kPrune;
    if (step == kWhole) {
      tuner_->tell(*trial, {.values = {loss}});
    } else if (is_pruned) {
      tuner_->tell(*trial, {.state = TrialState::kPruned});
    }
    if (step == kWhole || is_pruned) trial.reset();
  }

  std::unique_ptr<Tuner> tuner_;
  std::vector<std::optional<Trial>> held_;
};

void quality(const Args& args, const Args& chosen) {
  for (size_t i = 3; i < args.size(); ++i) {
    StudySettings settings = settings_of(std::stoull(args[i]));
    settings.sampler = chosen.at(0);
    settings.pruner = chosen.at(1);
    Workers workers(settings, std::stoull(args.at(2)));
    workers.run(std::stoll(args.at(1)));
    const Json line{
        {"seed", settings.seed}, {"loss", workers.found()}, {"trials", workers.trials()}};
    std::cout << line.dump() << std::endl;
  }
}

/// Eight trials at a time report in turn; all are completed.
void speed(const Args& args, const Args& chosen) {
  const int64_t trials = std::stoll(args.at(1)), reports = std::stoll(args.at(2));
  constexpr int64_t kTogether = 8;
  StudySettings settings = settings_of(1);
  settings.pruner = chosen.at(0);
  const auto pruner = make_pruner(TuneRegistries(), settings);
  Study study(settings);
  double telling = 0, judging = 0;
  for (int64_t first = 0; first < trials; first += kTogether) {
    for (int64_t number = first; number < first + kTogether; ++number) {
      Random random(1, number);
      study.apply({.kind = Event::Kind::kQueued,
                   .trial = number,
                   .bracket = pruner->bracket(study, number),
                   .point = random_point(settings.space, random)});
      study.apply({.kind = Event::Kind::kStarted, .trial = number, .attempt = 1});
    }
    for (int64_t report = 0; report < reports * kTogether; ++report) {
      const int64_t number = first + report % kTogether, step = report / kTogether + 1;
      const Trial& trial = study.trials()[static_cast<size_t>(number)];
      const double loss = curve(trial.point, step);
      const double begin = monotonic_seconds();
      study.apply(
          {.kind = Event::Kind::kReported, .trial = number, .step = step, .losses = {loss}});
      const double middle = monotonic_seconds();
      pruner->should_stop(study, trial);
      judging += monotonic_seconds() - middle;
      telling += middle - begin;
    }
    for (int64_t number = first; number < first + kTogether; ++number) {
      const double loss = study.trials()[static_cast<size_t>(number)].reports.back().loss;
      study.apply({.kind = Event::Kind::kFinished,
                   .trial = number,
                   .state = TrialState::kComplete,
                   .losses = {loss}});
    }
  }
  const double count = static_cast<double>(study.trials().size()) * static_cast<double>(reports);
  std::cout << Json{{"report_us", 1e6 * telling / count}, {"should_stop_us", 1e6 * judging / count}}
                   .dump()
            << '\n';
}

void run(const Args& all) {
  const auto separator = std::find(all.begin(), all.end(), "--");
  if (separator == all.end()) throw UsageError("expected -- and a pruner");
  const Args args(all.begin(), separator), chosen(separator + 1, all.end());
  if (args.at(0) == "quality") return quality(args, chosen);
  if (args.at(0) == "speed") return speed(args, chosen);
  throw UsageError("unknown command " + args[0] + "; expected quality or speed");
}

}  // namespace

int main(int count, char** args) {
  try {
    run(Args(args + 1, args + count));
  } catch (const std::exception& error) {
    std::cerr << "bench_tune_pruners: " << error.what() << '\n';
    return 2;
  }
  return 0;
}

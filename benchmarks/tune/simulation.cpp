#include "simulation.h"

#include <cmath>
#include <queue>

#include "gallop/tune/normal.h"

namespace gallop::tune {

namespace {

constexpr uint32_t kNoise = 1000, kDuration = 1001;  // Items that no sampler uses.
constexpr double kDeviation = 0.5;  // Standard deviation of the logarithm of a trial's duration.

double normal(uint64_t seed, int64_t trial, uint32_t item) {
  return normal_quantile(Random(seed, trial, item).uniform(0x1p-54, 1));
}

struct End {
  double time;
  int64_t trial;
  bool operator>(const End& other) const { return time > other.time; }
};

class Simulator {
 public:
  Simulator(const Simulation& simulation, Sampler& sampler, Study study)
      : simulation_(simulation), sampler_(sampler), study_(std::move(study)) {}

  std::vector<double> run() {
    fill();
    while (!ends_.empty()) {
      const End end = ends_.top();
      ends_.pop();
      time_ = end.time;
      take(end.trial);
      fill();
    }
    return regrets_;
  }

 private:
  // Assigns trials to all idle workers.
  void fill() {
    while (static_cast<int64_t>(ends_.size()) < simulation_.workers) {
      const auto number = static_cast<int64_t>(study_.trials().size());
      if (number == simulation_.trials) return;
      const auto proposal = sampler_.ask(study_, number);
      if (!proposal) return;
      queue_and_start(study_, proposal->point, time_);
      ends_.push(
          {time_ + std::exp(kDeviation * normal(simulation_.seed, number, kDuration)), number});
    }
  }

  void take(int64_t number) {
    const Problem& problem = *simulation_.problem;
    const double value = problem.value(study_.trials()[static_cast<size_t>(number)].point);
    const double observed = problem.noise == 0
                                ? value
                                : value + problem.noise * normal(simulation_.seed, number, kNoise);
    if (regrets_.empty() || observed < best_observed_) {
      best_observed_ = observed;
      regrets_.push_back(value - problem.smallest);
    } else {
      regrets_.push_back(regrets_.back());
    }
    finish(study_, number, {observed}, time_);
  }

  const Simulation& simulation_;
  Sampler& sampler_;
  Study study_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  double time_ = 0, best_observed_ = 0;
  std::vector<double> regrets_;
};

}  // namespace

std::vector<double> regrets(const Simulation& simulation, Sampler& sampler, Study study) {
  return Simulator(simulation, sampler, std::move(study)).run();
}

void queue_and_start(Study& study, const Point& point, double time) {
  const auto number = static_cast<int64_t>(study.trials().size());
  study.apply({.kind = Event::Kind::kQueued, .trial = number, .time = time, .point = point});
  study.apply({.kind = Event::Kind::kStarted, .trial = number, .time = time, .attempt = 1});
}

void finish(Study& study, int64_t trial, std::vector<double> losses, double time) {
  study.apply({.kind = Event::Kind::kFinished,
               .trial = trial,
               .time = time,
               .state = TrialState::kComplete,
               .losses = std::move(losses)});
}

}  // namespace gallop::tune

#include "gallop/tune/samplers/pb2.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "gallop/tune/gaussian_process/time_varying.h"

namespace gallop::tune {

namespace {

constexpr size_t kMostMeasurements = 200;
constexpr size_t kLeastMeasurements = 2;
constexpr size_t kMostFailures = 50;
constexpr uint32_t kPointDraw = 1;

class Pb2 final : public PopulationSampler {
 public:
  Pb2(const Pb2Config& config, const StudySettings& settings)
      : PopulationSampler(config.population, settings, "sampler pb2"),
        interval_(static_cast<double>(config.population.interval)),
        coordinates_(settings.space) {}

 protected:
  Point explored(const Study& study, const Trial& donor, int64_t number, Random& random) override {
    const auto measured = measurements(study);
    if (measured.size() < kLeastMeasurements) return random_point(study.space(), random);
    std::vector<Point> pending;
    for (const int64_t running : study.running()) {
      pending.push_back(study.trials()[static_cast<size_t>(running)].point);
    }
    return lowest_bound_at(coordinates_, measured, pending, time_after(donor),
                           Random(study.seed(), number, kPointDraw));
  }

 private:
  double time_after(const Trial& trial) const {
    return static_cast<double>(trial.last_step) / interval_;
  }

  // The last segments that started from a finished one. Failed segments, such as diverged
  // trainings, are imputed with the worst of the others.
  std::vector<TimedMeasurement> measurements(const Study& study) const {
    std::vector<TimedMeasurement> measured, failed;
    double worst = -std::numeric_limits<double>::infinity();
    const auto& finished = study.finished();
    for (auto number = finished.rbegin();
         number != finished.rend() && measured.size() < kMostMeasurements; ++number) {
      const Trial& trial = study.trials()[static_cast<size_t>(*number)];
      // A segment that was retried is listed at each end; only the last one counts.
      if (trial.last_end != finished.rend() - number - 1) continue;
      if (trial.member < 0 || trial.parent < 0) continue;
      const Trial& parent = study.trials()[static_cast<size_t>(trial.parent)];
      TimedMeasurement one{.point = trial.point, .time = time_after(parent), .value = 0};
      if (trial.state == TrialState::kFailed) {
        if (failed.size() < kMostFailures) failed.push_back(std::move(one));
        continue;
      }
      if (trial.state != TrialState::kComplete) continue;
      const auto steps = static_cast<double>(trial.last_step - parent.last_step);
      one.value = (trial.losses[0] - parent.losses[0]) / steps;
      worst = std::max(worst, one.value);
      measured.push_back(std::move(one));
    }
    if (measured.empty()) return measured;
    for (TimedMeasurement& one : failed) {
      one.value = worst;
      measured.push_back(std::move(one));
    }
    return measured;
  }

  double interval_;
  Coordinates coordinates_;
};

}  // namespace

void visit(config::Visitor& visitor, Pb2Config& config) { visit(visitor, config.population); }

std::unique_ptr<Sampler> make_pb2(const Pb2Config& config, const StudySettings& settings) {
  return std::make_unique<Pb2>(config, settings);
}

}  // namespace gallop::tune

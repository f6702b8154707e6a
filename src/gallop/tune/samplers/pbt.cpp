#include "gallop/tune/samplers/pbt.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::tune {

namespace {

constexpr int kDraws = 10'000;

// The next choice of positive weight on a random side; the same one if there is none.
double neighbor(const Choices& choices, double value, Random& random) {
  const auto count = static_cast<int64_t>(choices.values.size());
  const int64_t step = random.uniform() < 0.5 ? -1 : 1;
  for (int64_t next = static_cast<int64_t>(value) + step; next >= 0 && next < count; next += step) {
    if (choices.weights.empty() || choices.weights[static_cast<size_t>(next)] > 0) {
      return static_cast<double>(next);
    }
  }
  return value;
}

double scaled(const Interval& interval, double value, double factor) {
  const double wanted = value * factor;
  // Moves by at least one step, as rounding might lead back to the same value.
  const double far = std::max(std::abs(wanted - value), interval.step);
  const double target = wanted < value ? value - far : value + far;
  const double bounded = std::clamp(target, interval.low, interval.high);
  if (interval.step == 0) return bounded;
  return value_at(interval, coordinate(interval, bounded));
}

class Pbt final : public PopulationSampler {
 public:
  Pbt(const PbtConfig& config, const StudySettings& settings)
      : PopulationSampler(config.population, settings, "sampler pbt"), config_(config) {}

 protected:
  Point explored(const Study& study, const Trial& donor, int64_t /*number*/,
                 Random& random) override {
    const Space& space = study.space();
    for (int draw = 0; draw < kDraws; ++draw) {
      Point point = donor.point;
      for (size_t i = 0; i < space.size(); ++i) point[i] = changed(space[i], point[i], random);
      space.drop_inactive(point);
      if (space.allows(point)) return point;
    }
    throw UsageError(
        fmt::format("sampler pbt: the constraints reject all of {} perturbed points", kDraws));
  }

 private:
  double changed(const Parameter& parameter, double value, Random& random) const {
    if (std::isnan(value) || random.uniform() < config_.resample_probability) {
      return random_value(parameter, random);
    }
    if (const Choices* const choices = parameter.choices()) {
      return neighbor(*choices, value, random);
    }
    const double factor = config_.factors[random.below(config_.factors.size())];
    return scaled(*parameter.interval(), value, factor);
  }

  PbtConfig config_;
};

}  // namespace

void visit(config::Visitor& visitor, PbtConfig& config) {
  visit(visitor, config.population);
  visitor.field({.name = "resample_probability",
                 .help = "probability of resampling a parameter instead of perturbing it",
                 .min = 0,
                 .max = 1},
                config.resample_probability);
  visitor.field({.name = "factors", .help = "perturbation factors", .min = 0}, config.factors);
}

std::unique_ptr<Sampler> make_pbt(const PbtConfig& config, const StudySettings& settings) {
  if (config.factors.empty()) throw UsageError("sampler pbt: factors are empty");
  return std::make_unique<Pbt>(config, settings);
}

}  // namespace gallop::tune

#include "gallop/tune/samplers/random.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::tune {

namespace {

constexpr int kDraws = 10'000;

class RandomSampler final : public Sampler {
 public:
  std::optional<Proposal> ask(const Study& study, int64_t number) override {
    Random random(study.seed(), number);
    return Proposal{.point = random_point(study.space(), random)};
  }
};

}  // namespace

double choice_at_share(const Choices& choices, double share) {
  const auto count = static_cast<double>(choices.values.size());
  if (choices.weights.empty()) return std::floor(share * count);
  double left = share * std::accumulate(choices.weights.begin(), choices.weights.end(), 0.0);
  size_t last = 0;  // With positive weight, in case rounding leaves a remainder.
  for (size_t i = 0; i < choices.weights.size(); ++i) {
    if (choices.weights[i] == 0) continue;
    last = i;
    if (left < choices.weights[i]) break;
    left -= choices.weights[i];
  }
  return static_cast<double>(last);
}

double value_at_share(const Parameter& parameter, double share) {
  const Interval* const interval = parameter.interval();
  if (interval == nullptr) return choice_at_share(*parameter.choices(), share);
  const auto [low, high] = coordinates(*interval);
  return value_at(*interval, low + share * (high - low));
}

double random_value(const Parameter& parameter, Random& random) {
  return value_at_share(parameter, random.uniform());
}

Point random_point(const Space& space, Random& random) {
  for (int draw = 0; draw < kDraws; ++draw) {
    Point point;
    for (const Parameter& parameter : space.parameters()) {
      point.push_back(random_value(parameter, random));
    }
    space.drop_inactive(point);
    if (space.allows(point)) return point;
  }
  throw UsageError(fmt::format("the constraints reject all of {} random points", kDraws));
}

void visit(config::Visitor& /*visitor*/, RandomConfig& /*config*/) {}

std::unique_ptr<Sampler> make_random(const RandomConfig& /*config*/,
                                     const StudySettings& /*settings*/) {
  return std::make_unique<RandomSampler>();
}

}  // namespace gallop::tune

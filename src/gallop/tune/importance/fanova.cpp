#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/tune/importance/forest.h"
#include "gallop/tune/importance/history.h"
#include "gallop/tune/importance/importance.h"
#include "gallop/tune/sampler.h"

namespace gallop::tune {

namespace {

using Vector = std::vector<double>;

constexpr uint32_t kTree = 2000, kFilling = 2001;  // Random streams that no sampler uses.

/// The sampling probability of each choice; empty for an interval.
Vector categories_of(const Parameter& parameter) {
  const Choices* const choices = parameter.choices();
  if (choices == nullptr) return {};
  if (choices->weights.empty()) {
    return Vector(choices->values.size(), 1 / static_cast<double>(choices->values.size()));
  }
  return as_shares(choices->weights);
}

double place_of(const Parameter& parameter, double value) {
  const Interval* const interval = parameter.interval();
  if (interval == nullptr) return value;
  const auto [low, high] = coordinates(*interval);
  return (coordinate(*interval, value) - low) / (high - low);
}

/// The trials as samples in the variable dimensions. Values of inactive parameters are sampled.
Samples samples_of(const Study& study, const std::vector<size_t>& parameters, size_t objective) {
  Samples samples;
  for (const size_t index : parameters) {
    samples.categories.push_back(categories_of(study.space()[index]));
  }
  for (const Trial* const trial : judged_trials(study, objective)) {
    Random random(study.seed(), trial->number, kFilling);
    Vector& point = samples.points.emplace_back();
    for (const size_t index : parameters) {
      const Parameter& parameter = study.space()[index];
      const double value = trial->point[index];
      point.push_back(
          place_of(parameter, std::isnan(value) ? random_value(parameter, random) : value));
    }
    samples.values.push_back(trial->losses[objective]);
  }
  return samples;
}

/// Mean and variance of values whose weights sum to 1.
class Moments {
 public:
  void add(double weight, double value) {
    mean_ += weight * value;
    squares_ += weight * value * value;
  }
  double variance() const { return std::max(0.0, squares_ - mean_ * mean_); }

 private:
  double mean_ = 0, squares_ = 0;
};

/// The variance of a tree's prediction marginalized over all dimensions but one.
double marginal_variance(const std::vector<Leaf>& leaves, const Vector& rests,
                         const Samples& samples, size_t dimension) {
  const Vector& categories = samples.categories[dimension];
  Moments moments;
  if (!categories.empty()) {
    for (size_t i = 0; i < categories.size(); ++i) {
      double value = 0;
      for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
        if (leaves[leaf].sides[dimension].members[i]) value += leaves[leaf].value * rests[leaf];
      }
      moments.add(categories[i], value);
    }
    return moments.variance();
  }
  std::vector<std::pair<double, double>> changes;  // Position and change of the prediction.
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const auto& side = leaves[leaf].sides[dimension];
    changes.emplace_back(side.low, leaves[leaf].value * rests[leaf]);
    changes.emplace_back(side.high, -leaves[leaf].value * rests[leaf]);
  }
  std::sort(changes.begin(), changes.end());
  double value = 0, last = 0;
  for (const auto& [place, change] : changes) {
    moments.add(place - last, value);
    value += change;
    last = place;
  }
  return moments.variance();
}

/// The fraction of a tree's variance that each dimension explains; empty if the variance is 0.
Vector shares_of(std::vector<Leaf> leaves, const Samples& samples) {
  const size_t dimensions = samples.categories.size();
  const auto size = [&](const Leaf& leaf, size_t except) {
    double product = 1;
    for (size_t i = 0; i < dimensions; ++i) {
      if (i != except) product *= size_of(leaf.sides[i], samples.categories[i]);
    }
    return product;
  };
  double mean = 0;
  for (const Leaf& leaf : leaves) mean += size(leaf, dimensions) * leaf.value;
  Moments whole;  // Centered first, to reduce rounding.
  for (Leaf& leaf : leaves) {
    leaf.value -= mean;
    whole.add(size(leaf, dimensions), leaf.value);
  }
  Vector shares;
  if (whole.variance() == 0) return shares;
  for (size_t i = 0; i < dimensions; ++i) {
    Vector rests;
    for (const Leaf& leaf : leaves) rests.push_back(size(leaf, i));
    shares.push_back(marginal_variance(leaves, rests, samples, i) / whole.variance());
  }
  return shares;
}

}  // namespace

std::vector<double> fanova(const Study& study, const FanovaOptions& options) {
  check_objective(study, options.objective);
  if (options.trees < 1 || options.depth < 1) {
    throw UsageError(fmt::format("importance: {} trees of depth {}: at least 1 each", options.trees,
                                 options.depth));
  }
  std::vector<size_t> parameters;
  for (size_t i = 0; i < study.space().size(); ++i) {
    if (is_variable(study.space()[i])) parameters.push_back(i);
  }
  Vector importance(study.space().size());
  const Samples samples = samples_of(study, parameters, options.objective);
  if (samples.values.size() < 2) return as_shares(importance);
  for (int64_t tree = 0; tree < options.trees; ++tree) {
    Random random(study.seed(), tree, kTree);
    const Vector shares = shares_of(grown_tree(samples, options.depth, random), samples);
    for (size_t i = 0; i < shares.size(); ++i) importance[parameters[i]] += shares[i];
  }
  return as_shares(importance);
}

}  // namespace gallop::tune

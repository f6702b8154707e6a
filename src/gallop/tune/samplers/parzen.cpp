#include "gallop/tune/samplers/parzen.h"

#include <algorithm>
#include <numeric>

namespace gallop::tune {

namespace {

constexpr size_t kFullWeights = 25;

void normalize(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
}

std::vector<double> weights_of(size_t count, ParzenEstimator::Weights kind) {
  std::vector<double> weights(count + 1, 1.0);
  if (kind == ParzenEstimator::Weights::kFading && count > kFullWeights) {
    const size_t fading = count - kFullWeights;
    const double first = 1 / static_cast<double>(count);
    const double rise = fading > 1 ? (1 - first) / static_cast<double>(fading - 1) : 0;
    for (size_t i = 0; i < fading; ++i) weights[i] = first + static_cast<double>(i) * rise;
  }
  normalize(weights);
  return weights;
}

}  // namespace

ParzenEstimator::ParzenEstimator(const Space& space, std::vector<size_t> parameters,
                                 Weights weights, std::vector<size_t> context)
    : parameters_(std::move(parameters)), context_(std::move(context)), kind_(weights) {
  for (const size_t index : parameters_) axes_.push_back(make_axis(space[index]));
  for (const size_t index : context_) context_axes_.emplace_back(*space[index].choices());
}

void ParzenEstimator::insert(int64_t trial, const Point& point) {
  const auto place = std::lower_bound(trials_.begin(), trials_.end(), trial);
  const auto position = static_cast<size_t>(place - trials_.begin());
  trials_.insert(place, trial);
  for (size_t i = 0; i < axes_.size(); ++i) {
    axes_[i]->insert(position, trial, point[parameters_[i]]);
  }
  for (size_t i = 0; i < context_.size(); ++i) {
    context_axes_[i].insert(position, trial, point[context_[i]]);
  }
  is_fresh_ = false;
}

void ParzenEstimator::erase(int64_t trial) {
  const auto place = std::lower_bound(trials_.begin(), trials_.end(), trial);
  const auto position = static_cast<size_t>(place - trials_.begin());
  trials_.erase(place);
  for (const auto& axis : axes_) axis->erase(position, trial);
  for (ChoiceAxis& axis : context_axes_) axis.erase(position, trial);
  is_fresh_ = false;
}

void ParzenEstimator::set_narrowing(double narrowing) {
  if (narrowing == narrowing_) return;
  narrowing_ = narrowing;
  is_fresh_ = false;
}

void ParzenEstimator::set_context(const Point& point) {
  std::vector<double> choices;
  for (const size_t parameter : context_) choices.push_back(point[parameter]);
  if (choices == context_choices_) return;
  context_choices_ = std::move(choices);
  is_fresh_ = false;
}

void ParzenEstimator::refresh() {
  if (is_fresh_) return;
  weights_ = weights_of(size(), kind_);
  for (size_t i = 0; i < context_choices_.size(); ++i) {
    context_axes_[i].refresh(trials_, narrowing_);
    context_axes_[i].weigh(weights_, context_choices_[i]);
  }
  if (!context_choices_.empty()) normalize(weights_);
  constants_.assign(size() + 1, 0.0);
  columns_ = {.count = size() + 1};
  for (const auto& axis : axes_) {
    axis->refresh(trials_, narrowing_);
    axis->describe(columns_, constants_);
  }
  columns_.weights = weights_.data();
  columns_.constants = constants_.data();
  if (merged_.merge(columns_)) columns_ = merged_.columns();
  is_fresh_ = true;
}

void ParzenEstimator::draw(Random& random, Point& point) {
  refresh();
  double left = random.uniform();
  size_t kernel = 0;
  while (kernel < size() && left >= weights_[kernel]) left -= weights_[kernel++];
  for (size_t i = 0; i < axes_.size(); ++i) point[parameters_[i]] = axes_[i]->draw(kernel, random);
}

std::vector<double> ParzenEstimator::log_densities(const std::vector<Point>& points) {
  refresh();
  std::vector<KernelQuery> queries(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      axes_[axis]->describe(queries[i], points[i][parameters_[axis]]);
    }
  }
  return tune::log_densities(columns_, queries);
}

const std::vector<double>& ParzenEstimator::weights() {
  refresh();
  return weights_;
}

std::vector<std::vector<double>> ParzenEstimator::kernel(size_t position) {
  refresh();
  std::vector<std::vector<double>> axes;
  for (const auto& axis : axes_) axes.push_back(axis->kernel(position));
  return axes;
}

}  // namespace gallop::tune

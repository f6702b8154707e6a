#include "gallop/tune/gaussian_process/model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gallop::tune {

namespace {

constexpr size_t kFirstFit = 2;
constexpr size_t kFitsPerDoubling = 16;
// Number of measurements from which fits are spread over calls.
constexpr size_t kSpreadFrom = 128;
constexpr size_t kFewest = 8;  // Smallest fit that warm-starts another one.
constexpr double kLeastDeviation = 1e-10;

size_t next_fit(size_t size) {
  return size + std::max<size_t>(1, std::bit_floor(size) / kFitsPerDoubling);
}

/// The size of the fit whose kernel warm-starts this one: a power of two.
size_t start_of(size_t size) {
  const size_t power = std::bit_floor(size);
  return power < size ? power : power / 2;
}

/// The last scheduled fit with at most `most` measurements.
size_t last_fit(size_t most) {
  size_t size = kFirstFit;
  while (next_fit(size) <= most) size = next_fit(size);
  return size;
}

size_t serves_from(size_t size) { return size < kSpreadFrom ? size : next_fit(size); }

/// The fit whose kernel is used with `count` measurements.
size_t serving_fit(size_t count) {
  size_t size = kFirstFit;
  while (serves_from(next_fit(size)) <= count) size = next_fit(size);
  return size;
}

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

double Standardized::of(double value) const {
  if (value > median && below > 0) value = median + below * std::log1p((value - median) / below);
  return (value - mean) / deviation;
}

Standardized standardized(std::vector<double> values, LargeValues large) {
  std::vector<double> finite;
  for (const double value : values) {
    if (std::isfinite(value)) finite.push_back(value);
  }
  if (finite.empty()) return {.values = std::vector<double>(values.size(), 0.0)};
  std::sort(finite.begin(), finite.end());
  const double median = finite[finite.size() / 2];
  Standardized result{.values = {}, .median = median};
  if (large == LargeValues::kDrawnTogether) result.below = median - finite.front();
  double sum = 0, squares = 0;
  for (double& value : values) {
    value = std::isnan(value) ? finite.back() : std::clamp(value, finite.front(), finite.back());
    value = result.of(value);
    sum += value / static_cast<double>(values.size());
  }
  for (const double value : values) {
    squares += (value - sum) * (value - sum) / static_cast<double>(values.size());
  }
  result.mean = sum;
  result.deviation = std::max(std::sqrt(squares), kLeastDeviation);
  for (double& value : values) value = (value - result.mean) / result.deviation;
  result.values = std::move(values);
  return result;
}

void Model::forget_from(size_t size) {
  points_.resize(size);
  values_.resize(size);
  std::erase_if(kernels_, [size](const auto& kernel) { return kernel.first > size; });
  if (fit_size_ > size) fit_.reset();
  posterior_.reset();
}

std::unique_ptr<KernelFit> Model::begun_fit(size_t size) {
  const size_t first = start_of(size);
  const Kernel start =
      first < kFewest ? KernelFit::default_kernel(categorical_.size()) : kernel_after(first);
  Inputs inputs(categorical_);
  for (size_t i = 0; i < size; ++i) inputs.append(points_[i]);
  const std::vector<double> values(values_.begin(), values_.begin() + static_cast<ptrdiff_t>(size));
  return std::make_unique<KernelFit>(std::move(inputs), standardized(values, large_).values, start,
                                     is_exact_);
}

const Kernel& Model::kernel_after(size_t size) {
  const auto known = kernels_.find(size);
  if (known != kernels_.end()) return known->second;
  std::unique_ptr<KernelFit> fit =
      fit_ != nullptr && fit_size_ == size ? std::move(fit_) : begun_fit(size);
  while (!fit->is_done()) fit->step();
  return kernels_.emplace(size, fit->kernel()).first->second;
}

// Runs a few steps of the next fit.
void Model::go_on_fitting() {
  const size_t count = points_.size(), size = last_fit(count);
  if (serves_from(size) <= count || kernels_.contains(size)) return;
  if (fit_ == nullptr || fit_size_ != size) {
    fit_ = begun_fit(size);
    fit_size_ = size;
  }
  const size_t calls = next_fit(size) - size;
  const size_t steps = (KernelFit::kMostEvaluations + calls - 1) / calls;
  for (size_t i = 0; i < steps && !fit_->is_done(); ++i) fit_->step();
}

void Model::update(const std::vector<std::vector<double>>& points,
                   const std::vector<double>& values) {
  size_t same = 0;
  while (same < std::min(points.size(), points_.size()) && points[same] == points_[same] &&
         is_same(values[same], values_[same])) {
    ++same;
  }
  if (same < points_.size()) forget_from(same);
  points_.insert(points_.end(), points.begin() + static_cast<ptrdiff_t>(same), points.end());
  values_ = values;

  const size_t wanted = serving_fit(points_.size());
  if (!posterior_.has_value() || posterior_kernel_ != wanted) {
    // Uses the number of measurements from which this kernel serves: the same rounding in all
    // models.
    Inputs inputs(categorical_);
    for (size_t i = 0; i < serves_from(wanted); ++i) inputs.append(points_[i]);
    posterior_.emplace(kernel_after(wanted), inputs);
    posterior_kernel_ = wanted;
  }
  posterior_->set_pending({});
  for (size_t i = posterior_->size(); i < points_.size(); ++i) posterior_->append(points_[i]);
  standard_ = standardized(values_, large_);
  posterior_->set_values(standard_.values);
  go_on_fitting();
}

}  // namespace gallop::tune

#include "gallop/tune/gaussian_process/posterior.h"

#include <algorithm>
#include <cmath>

#include "gallop/base/error.h"

namespace gallop::tune {

namespace {

constexpr size_t kBlock = 32;             // Rows of a triangle per block.
constexpr double kSmallestNoise = 1e-10;  // Minimum noise of pending points, relative to the scale.

// Multiplies rows by the rows of a lower triangular matrix, or of an upper one.
void multiply_lower(const Matrix& rows, const Matrix& lower, Matrix& products) {
  const size_t size = lower.rows();
  products.reset(rows.rows(), size);
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t count = std::min(kBlock, size - begin);
    add_products(1, {rows.row(0), rows.stride(), rows.rows()},
                 {lower.row(begin), lower.stride(), count}, Matrix::padded(begin + count),
                 products.row(0) + begin, products.stride());
  }
}

void multiply_upper(const Matrix& rows, const Matrix& upper, Matrix& products) {
  const size_t size = upper.rows(), depth = Matrix::padded(size);
  products.reset(rows.rows(), size);
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t count = std::min(kBlock, size - begin);
    add_products(1, {rows.row(0) + begin, rows.stride(), rows.rows()},
                 {upper.row(begin) + begin, upper.stride(), count}, depth - begin,
                 products.row(0) + begin, products.stride());
  }
}

}  // namespace

Posterior::Posterior(Kernel kernel, const Inputs& inputs)
    : kernel_(std::move(kernel)), inputs_(inputs), size_(inputs.size()) {
  Matrix factor(size_, size_);
  for (double added = 0;; added = std::max(10 * added, 1e-9 * (kernel_.scale + kernel_.noise))) {
    for (size_t i = 0; i < size_; ++i) {
      covariances(kernel_, inputs_, i, inputs_.point(i), factor.row(i), nullptr);
      factor.at(i, i) = kernel_.scale + kernel_.noise + added;
    }
    if (factor_cholesky(factor, transposed_)) {
      kernel_.noise += added;
      break;
    }
    if (!(added < kernel_.scale)) throw InternalError("a covariance matrix cannot be factored");
  }
  inverse_ = transposed(transposed_);
}

// Appends a row to the inverse of the Cholesky factor.
void Posterior::extend(std::span<const double> point, double noise) {
  const size_t size = inputs_.size();
  Matrix row(1, size), roots;
  covariances(kernel_, inputs_, size, point, row.row(0), nullptr);
  multiply_lower(row, inverse_, roots);
  double variance = kernel_.scale + noise;
  for (size_t i = 0; i < size; ++i) variance -= roots.at(0, i) * roots.at(0, i);
  const double root = std::sqrt(std::max(variance, noise));
  multiply_upper(roots, transposed_, row);
  inverse_.resize(size + 1, size + 1);
  transposed_.resize(size + 1, size + 1);
  for (size_t i = 0; i < size; ++i) {
    inverse_.at(size, i) = transposed_.at(i, size) = -row.at(0, i) / root;
  }
  inverse_.at(size, size) = transposed_.at(size, size) = 1 / root;
  inputs_.append(point);
}

void Posterior::append(std::span<const double> point) {
  if (pending() > 0) throw InternalError("an input is added while others are pending");
  extend(point, kernel_.noise);
  ++size_;
}

void Posterior::set_values(std::vector<double> values) {
  if (values.size() != size_) throw InternalError("the numbers of values and inputs differ");
  values_ = std::move(values);
  find_weights();
}

void Posterior::find_weights() {
  const size_t all = inputs_.size();
  Matrix row(1, all), roots, weights;
  std::copy(values_.begin(), values_.end(), row.row(0));
  multiply_lower(row, inverse_, roots);
  // Pending points do not change the mean.
  std::fill(roots.row(0) + size_, roots.row(0) + all, 0.0);
  multiply_upper(roots, transposed_, weights);
  weights_.assign(weights.row(0), weights.row(0) + weights.stride());
}

void Posterior::set_pending(const std::vector<std::vector<double>>& points) {
  size_t same = 0;
  while (same < std::min(points.size(), pending()) && inputs_.point(size_ + same) == points[same]) {
    ++same;
  }
  const size_t kept = size_ + same;
  inputs_.shrink(kept);
  inverse_.resize(kept, kept);
  transposed_.resize(kept, kept);
  for (size_t i = same; i < points.size(); ++i) extend(points[i], kSmallestNoise * kernel_.scale);
  if (values_.size() != size_) return;
  find_weights();
}

std::vector<double> Posterior::drawn(std::span<const double> normals) const {
  // The Cholesky factor of the pending covariances is the inverse of the trailing block.
  std::vector<double> result, offsets;
  Matrix row(1, inputs_.size());
  for (size_t i = size_; i < inputs_.size(); ++i) {
    double offset = normals[i - size_];
    for (size_t j = size_; j < i; ++j) offset -= inverse_.at(i, j) * offsets[j - size_];
    offsets.push_back(offset / inverse_.at(i, i));
    covariances(kernel_, inputs_, size_, inputs_.point(i), row.row(0), nullptr);
    double mean = 0;
    for (size_t j = 0; j < size_; ++j) mean += row.at(0, j) * weights_[j];
    result.push_back(mean + offsets.back());
  }
  return result;
}

void Posterior::predict(const Matrix& points, bool with_gradients, Predictions& predictions) const {
  const size_t count = points.rows(), all = inputs_.size();
  predictions.covariances.reset(count, all);
  if (with_gradients) {
    predictions.slopes.reset(count, all);
    predictions.points = points;
  }
  for (size_t i = 0; i < count; ++i) {
    covariances(kernel_, inputs_, all, {points.row(i), points.columns()},
                predictions.covariances.row(i),
                with_gradients ? predictions.slopes.row(i) : nullptr);
  }
  multiply_lower(predictions.covariances, inverse_, predictions.roots);
  predictions.means.assign(count, 0);
  predictions.variances.assign(count, kernel_.scale);
  predictions.shares.reset(count, pending());
  add_products(1, {predictions.covariances.row(0), predictions.covariances.stride(), count},
               {weights_.data(), weights_.size(), 1}, Matrix::padded(all), predictions.means.data(),
               1);
  for (size_t i = 0; i < count; ++i) {
    const Rows roots{predictions.roots.row(i), predictions.roots.stride(), 1};
    add_products(-1, roots, roots, Matrix::padded(all), &predictions.variances[i], 1);
    predictions.variances[i] = std::max(predictions.variances[i], 0.0);
    std::copy(roots.data + size_, roots.data + all, predictions.shares.row(i));
  }
}

void Posterior::add_gradients(Predictions& predictions, const PredictionSlopes& slopes,
                              Matrix& gradients) const {
  const size_t count = predictions.points.rows(), all = inputs_.size();
  Matrix& roots = predictions.roots;
  Matrix& weights = predictions.covariances;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < all; ++j) roots.at(i, j) *= -2 * slopes.variances[i];
    for (size_t j = size_; j < all; ++j) roots.at(i, j) += slopes.shares.at(i, j - size_);
  }
  multiply_upper(roots, transposed_, weights);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < all; ++j) {
      weights.at(i, j) += slopes.means[i] * weights_[j];
      weights.at(i, j) *= predictions.slopes.at(i, j);
    }
    add_distance_gradient(kernel_, inputs_, all,
                          {predictions.points.row(i), predictions.points.columns()}, weights.row(i),
                          {gradients.row(i), gradients.columns()});
  }
}

}  // namespace gallop::tune

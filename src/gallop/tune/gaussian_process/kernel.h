#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gallop/tune/gaussian_process/matrix.h"

namespace gallop::tune {

/// Encoded points, stored dimension by dimension (column-major): a number in [0, 1], or the index
/// of a category, for each dimension. If the inputs have times, they are an additional last
/// dimension.
class Inputs {
 public:
  static constexpr size_t kTogether = 2 * Matrix::kLanes;

  explicit Inputs(std::vector<bool> categorical, bool has_times = false)
      : categorical_(std::move(categorical)),
        has_times_(has_times),
        values_(categorical_.size() + (has_times ? 1 : 0)) {}

  size_t size() const { return size_; }
  size_t dimensions() const { return categorical_.size(); }
  bool has_times() const { return has_times_; }
  bool is_categorical(size_t dimension) const { return categorical_[dimension]; }
  const std::vector<bool>& categorical() const { return categorical_; }
  /// One dimension of all points (index size() of the dimensions: the times), padded with zeros to
  /// a multiple of kTogether.
  const double* values(size_t dimension) const { return values_[dimension].data(); }
  std::vector<double> point(size_t index) const;

  void append(std::span<const double> point);
  /// Keeps only the first `size` points.
  void shrink(size_t size);

 private:
  std::vector<bool> categorical_;
  bool has_times_;
  size_t size_ = 0;
  std::vector<std::vector<double>> values_;
};

/// A Matern 5/2 kernel with automatic relevance determination (Rasmussen and Williams, "Gaussian
/// Processes for Machine Learning", 2006, sections 4.2 and 5.1), and the noise of the measurements.
/// The squared distance of two points is the sum over the dimensions of the squared difference (1
/// for different categories) times the inverse squared length scale.
struct Kernel {
  std::vector<double> inverse_squared_lengths;
  double scale = 1;  ///< The variance of the function.
  double noise = 1;  ///< The variance of the noise.
  /// If inputs have times, covariances are multiplied by (1 - forgetting)^(time difference / 2)
  /// (Bogunovic, Scarlett and Cevher, "Time-varying Gaussian process bandit optimization", 2016).
  double forgetting = 0;
};

/// The covariances of the function at a point and at the first `count` inputs. `slopes`, if not
/// null, receives their derivatives by the squared distance.
void covariances(const Kernel& kernel, const Inputs& inputs, size_t count,
                 std::span<const double> point, double* values, double* slopes);

/// Adds to `gradient` the sum over the inputs of `weights` times the derivative of their squared
/// distance from a point by its coordinates; categories and times contribute nothing.
void add_distance_gradient(const Kernel& kernel, const Inputs& inputs, size_t count,
                           std::span<const double> point, const double* weights,
                           std::span<double> gradient);

/// Adds to `gradient` the sum over the first `count` inputs of `weights` times the derivative of
/// their squared distance from a point by the inverse squared lengths.
void add_length_gradient(const Inputs& inputs, size_t count, std::span<const double> point,
                         const double* weights, std::span<double> gradient);

}  // namespace gallop::tune

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gallop/tune/gaussian_process/matrix.h"

namespace gallop::tune {

/// Points of a search, each a number in [0, 1] for each dimension, or the index of a choice where
/// the dimension is one of categories. Where inputs have times, the time of a point stands behind
/// its dimensions. Kept dimension by dimension.
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
  /// This dimension of all points (the one behind the last: the times), and zeros up to a multiple
  /// of kTogether.
  const double* values(size_t dimension) const { return values_[dimension].data(); }
  std::vector<double> point(size_t index) const;

  void append(std::span<const double> point);
  /// Only the first so many stay.
  void shrink(size_t size);

 private:
  std::vector<bool> categorical_;
  bool has_times_;
  size_t size_ = 0;
  std::vector<std::vector<double>> values_;
};

/// A Matern kernel of smoothness 5/2 with a length scale for each dimension (Rasmussen and
/// Williams, "Gaussian Processes for Machine Learning", 2006, sections 4.2 and 5.1), and the noise
/// of what is measured. The squared distance of two points is the sum over the dimensions of the
/// squared difference, or of 1 for different categories, times the inverse of the squared length
/// scale.
struct Kernel {
  std::vector<double> inverse_squared_lengths;
  double scale = 1;  ///< The variance of the function.
  double noise = 1;  ///< The variance of the noise.
  /// Where inputs have times, covariances are multiplied by (1 - forgetting) to the power of half
  /// the time between (Bogunovic, Scarlett and Cevher, "Time-varying Gaussian process bandit
  /// optimization", 2016).
  double forgetting = 0;
};

/// The covariances of a function's values at a point and at the first `count` inputs. `slopes`, if
/// not null, are their derivatives by the squared distance.
void covariances(const Kernel& kernel, const Inputs& inputs, size_t count,
                 std::span<const double> point, double* values, double* slopes);

/// The sum over the inputs of `weights` times the derivative of their squared distance from a point
/// by its coordinates, added to `gradient`; nothing for categories and times.
void add_distance_gradient(const Kernel& kernel, const Inputs& inputs, size_t count,
                           std::span<const double> point, const double* weights,
                           std::span<double> gradient);

/// The sum over the first `count` inputs of `weights` times the derivative of their squared
/// distance from a point by the inverse squared lengths, added to `gradient`.
void add_length_gradient(const Inputs& inputs, size_t count, std::span<const double> point,
                         const double* weights, std::span<double> gradient);

}  // namespace gallop::tune

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gallop/tune/gaussian_process/kernel.h"
#include "gallop/tune/gaussian_process/matrix.h"

namespace gallop::tune {

/// Predictions of a Gaussian process at some points, one row each.
struct Predictions {
  std::vector<double> means, variances;
  /// Sensitivity of the predictions to the pending values: if these are drawn with standard normal
  /// numbers e (see Posterior::drawn()), the conditional mean is the mean plus the dot product of e
  /// and this row. The variances are conditional on the pending values.
  Matrix shares;

  Matrix points;                      ///< The queried points.
  Matrix covariances, slopes, roots;  ///< Intermediate results for the gradients.
};

/// The derivatives of a utility by means, variances and shares.
struct PredictionSlopes {
  std::vector<double> means, variances;
  Matrix shares;
};

/// The posterior of a Gaussian process (Rasmussen and Williams, "Gaussian Processes for Machine
/// Learning", 2006, algorithm 2.1). Appending an input takes quadratic time; replacing the values
/// is cheap. Pending inputs are those whose values are not known yet.
class Posterior {
 public:
  /// If the covariance matrix is numerically singular, the noise is raised until it is not.
  Posterior(Kernel kernel, const Inputs& inputs);

  const Kernel& kernel() const { return kernel_; }
  size_t size() const { return size_; }
  size_t pending() const { return inputs_.size() - size_; }

  /// Appends an input. No input may be pending.
  void append(std::span<const double> point);
  /// Sets the values at the inputs, in order.
  void set_values(std::vector<double> values);
  /// Replaces the pending inputs.
  void set_pending(const std::vector<std::vector<double>>& points);

  /// Samples the values of the pending inputs, from one standard normal number each.
  std::vector<double> drawn(std::span<const double> normals) const;

  /// Predicts the function without noise. `with_gradients` keeps what add_gradients() needs.
  void predict(const Matrix& points, bool with_gradients, Predictions& predictions) const;
  /// Adds to the rows of `gradients` the derivatives of a utility by the coordinates. Consumes the
  /// intermediate results in `predictions`.
  void add_gradients(Predictions& predictions, const PredictionSlopes& slopes,
                     Matrix& gradients) const;

 private:
  void extend(std::span<const double> point, double noise);
  void find_weights();

  Kernel kernel_;
  Inputs inputs_;  // Pending inputs come last.
  size_t size_ = 0;
  Matrix inverse_, transposed_;           // The Cholesky factor's inverse and transpose.
  std::vector<double> values_, weights_;  // Weights of pending inputs are zero.
};

}  // namespace gallop::tune

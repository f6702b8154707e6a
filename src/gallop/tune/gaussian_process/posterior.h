#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gallop/tune/gaussian_process/kernel.h"
#include "gallop/tune/gaussian_process/matrix.h"

namespace gallop::tune {

/// What a Gaussian process says of some points, a row each.
struct Predictions {
  std::vector<double> means, variances;
  /// How the value there hangs together with those that are pending. If the latter are drawn by
  /// standard normal numbers e (see Posterior::drawn()), the mean becomes the mean plus the sum of
  /// e times these. The variances take what is pending for known.
  Matrix shares;

  Matrix points;                      ///< Where they were asked.
  Matrix covariances, slopes, roots;  ///< What gradients are found from.
};

/// What a utility's derivatives by means, variances and shares are.
struct PredictionSlopes {
  std::vector<double> means, variances;
  Matrix shares;
};

/// A Gaussian process given measured values (Rasmussen and Williams, "Gaussian Processes for
/// Machine Learning", 2006, algorithm 2.1). Inputs can be added, which takes a time that goes with
/// the square of their number; values change at no cost worth naming. Further inputs can be
/// pending: their values are not known yet.
class Posterior {
 public:
  /// Where rounding makes the matrix of covariances singular, the noise is raised until it is not.
  Posterior(Kernel kernel, const Inputs& inputs);

  const Kernel& kernel() const { return kernel_; }
  size_t size() const { return size_; }
  size_t pending() const { return inputs_.size() - size_; }

  /// One more input. Nothing may be pending.
  void append(std::span<const double> point);
  /// The values at the inputs, in their order.
  void set_values(std::vector<double> values);
  /// What is pending, instead of what was.
  void set_pending(const std::vector<std::vector<double>>& points);

  /// Values of what is pending, drawn by as many standard normal numbers.
  std::vector<double> drawn(std::span<const double> normals) const;

  /// Of the function itself, without noise. `with_gradients` keeps what add_gradients() needs.
  void predict(const Matrix& points, bool with_gradients, Predictions& predictions) const;
  /// Adds to the rows of `gradients` the derivatives of a utility by the coordinates. Uses up what
  /// the predictions kept for it.
  void add_gradients(Predictions& predictions, const PredictionSlopes& slopes,
                     Matrix& gradients) const;

 private:
  void extend(std::span<const double> point, double noise);
  void find_weights();

  Kernel kernel_;
  Inputs inputs_;  // What is pending comes last.
  size_t size_ = 0;
  Matrix inverse_, transposed_;           // Of the Cholesky factor.
  std::vector<double> values_, weights_;  // The weights are zero for what is pending.
  Matrix pending_shares_;  // Of what is pending, the root of the variance on the diagonal.
  std::vector<double> pending_means_;
};

}  // namespace gallop::tune

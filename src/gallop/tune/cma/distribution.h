#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "gallop/tune/cma/eigen.h"
#include "gallop/tune/random.h"

namespace gallop::tune {

/// The normal distribution of the covariance matrix adaptation evolution strategy (Hansen, "The CMA
/// evolution strategy: a tutorial", 2016, with its default parameters and negative weights).
class CmaDistribution {
 public:
  struct Start {
    std::vector<double> mean;
    double deviation = 1;
    size_t population = 0;  ///< Points in a generation, at least 2; 0: default_population().
    /// Adapts the learning rates to the noise of the steps (Nomura, Akimoto and Ono, "CMA-ES with
    /// learning rate adaptation", 2023).
    bool adapt_rates = false;
  };

  explicit CmaDistribution(const Start& start);

  /// The default population size, 4 + floor(3 ln dimensions).
  static size_t default_population(size_t dimensions);

  size_t dimensions() const { return mean_.size(); }
  size_t population() const { return weights_.size(); }
  const std::vector<double>& mean() const { return mean_; }
  void set_mean(size_t dimension, double value) { mean_[dimension] = value; }
  /// The step size.
  double sigma() const { return sigma_; }
  const SquareMatrix& covariance() const { return covariance_; }
  /// The standard deviation of one coordinate.
  double deviation(size_t dimension) const;

  std::vector<double> sample(Random& random) const;
  /// A point that was not sampled from this distribution, moved to within the distance from the
  /// mean that samples have (Hansen, "Injecting external solutions into CMA-ES", 2011).
  std::vector<double> injected(std::vector<double> point) const;

  /// A point of a generation with its loss. tell() ends a generation; its solutions are sorted by
  /// loss.
  struct Solution {
    std::vector<double> point;
    double loss;
  };
  void tell(const std::vector<Solution>& solutions);

  /// Whether the search has converged: losses or points hardly differ any more, or the covariance
  /// matrix is numerically degenerate (sections B.3 and 4 of the tutorial).
  bool has_converged() const;

 private:
  using Vector = std::vector<double>;

  struct Rates {
    double effective;  // Effective number of positive weights (mu_eff).
    double path_sigma, damping, path_covariance, rank_one, rank_many;
  };
  /// The signal estimates of the learning rate adaptation, for the mean or for the covariance.
  struct Signal {
    double memory;
    Vector average;
    double variance = 0;
    double rate = 1;
  };

  void choose_rates();
  void choose_weights(Vector weights, double negative_effective);
  Vector whitened(const Vector& step) const;
  void move_paths(const Vector& step, bool& is_stalled);
  void move_covariance(const std::vector<Vector>& steps, bool is_stalled);
  void decompose();
  void adapt_rates(const Vector& old_mean, double old_sigma, const SquareMatrix& old_covariance,
                   const SquareMatrix& old_inverse_root);
  void adapt_rate(Signal& signal, const Vector& step) const;
  bool has_flat_losses() const;
  bool has_lost_precision() const;

  Vector mean_, weights_;
  double sigma_, first_sigma_;
  SquareMatrix covariance_;
  Vector path_sigma_, path_covariance_;
  Rates rates_{};
  EigenSystem
      axes_;  // Eigenvectors of the covariance; `values` are square roots of the eigenvalues.
  size_t generation_ = 0;
  std::deque<double> extremes_;  // Best and worst losses of the last generations.
  bool adapts_rates_;
  Signal mean_signal_, covariance_signal_;
};

}  // namespace gallop::tune

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gallop/tune/gaussian_process/boxes.h"
#include "gallop/tune/gaussian_process/posterior.h"

namespace gallop::tune {

/// An acquisition function over points, to be maximized.
class Acquisition {
 public:
  virtual ~Acquisition() = default;
  /// A length scale for each dimension, by which the search scales its steps.
  virtual std::vector<double> lengths() const = 0;
  /// One value for each row of `points`; `gradients`, if not null, receives the derivatives, with
  /// the shape of `points`.
  virtual std::vector<double> evaluate(const Matrix& points, Matrix* gradients) const = 0;
};

/// A modeled quantity with a Gaussian process posterior. `normals` draws the values of the pending
/// trials: one row per Monte Carlo sample, with one standard normal number per pending trial; a
/// single empty row if none is pending. The acquisition is averaged over the rows.
struct Modeled {
  const Posterior* posterior = nullptr;
  const Matrix* normals = nullptr;
};

/// A modeled constraint with its upper limit.
struct ModeledLimit {
  Modeled quantity;
  double most = 0;
};

/// The logarithm of the expected improvement below the best loss, times the probability that the
/// limits hold (Gardner et al., "Bayesian optimization with inequality constraints", 2014). Pending
/// trials are integrated out by Monte Carlo: each sample is exact in the searched trial and adds
/// its part of the joint expected improvement (Ament et al., 2023, arXiv 2310.20708). Without
/// `best`, if no trial has satisfied the limits so far, it is the probability of feasibility alone.
std::unique_ptr<Acquisition> log_expected_improvement(const Modeled& loss,
                                                      std::optional<double> best,
                                                      std::vector<ModeledLimit> limits);

/// The logarithm of the expected hypervolume improvement up to `reference`, times the probability
/// that the limits hold. Exact for independent losses, as a sum over boxes (Yang et al., "Efficient
/// computation of expected hypervolume improvement using box decomposition algorithms", 2019).
/// `front` contains the losses of the feasible trials.
std::unique_ptr<Acquisition> log_expected_hypervolume_improvement(
    const std::vector<Modeled>& losses, const std::vector<std::vector<double>>& front,
    const std::vector<double>& reference, std::vector<ModeledLimit> limits);

}  // namespace gallop::tune

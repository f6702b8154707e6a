#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gallop/tune/gaussian_process/boxes.h"
#include "gallop/tune/gaussian_process/posterior.h"

namespace gallop::tune {

/// What is searched for, as a function of points: how much a trial there promises.
class Acquisition {
 public:
  virtual ~Acquisition() = default;
  /// Adapts steps of a search to how fast the function changes in each dimension.
  virtual std::vector<double> lengths() const = 0;
  /// A value for each row of `points`; `gradients`, if not null, becomes its derivatives.
  virtual std::vector<double> evaluate(const Matrix& points, Matrix* gradients) const = 0;
};

/// A measured quantity of which a Gaussian process is known. What is drawn for pending trials is
/// drawn by the rows of `normals`: a row for each sample, of which the acquisition is the mean,
/// with one number for each pending trial. One empty row where nothing is pending.
struct Modeled {
  const Posterior* posterior = nullptr;
  const Matrix* normals = nullptr;
};

/// A measured constraint: the quantity is to be at most this.
struct ModeledLimit {
  Modeled quantity;
  double most = 0;
};

/// The logarithm of by how much the loss is expected to fall below the best, or below what pending
/// trials come to, times the probability that the limits hold (Gardner et al., "Bayesian
/// optimization with inequality constraints", 2014). Over samples of what pending trials come to it
/// is the mean, of which each is exact in the trial that is searched for: what that trial adds to
/// the joint expected improvement (Ament et al., 2023, arXiv 2310.20708). Without a `best`, what no
/// trial has kept to the limits so far, the probability alone.
std::unique_ptr<Acquisition> log_expected_improvement(const Modeled& loss,
                                                      std::optional<double> best,
                                                      std::vector<ModeledLimit> limits);

/// The logarithm of by how much the volume that the losses dominate up to `reference` is expected
/// to grow, times the probability that the limits hold. Exact for independent losses, as a sum over
/// boxes (Yang et al., "Efficient computation of expected hypervolume improvement using box
/// decomposition algorithms", 2019). `front` are losses of trials that kept to the limits.
std::unique_ptr<Acquisition> log_expected_hypervolume_improvement(
    const std::vector<Modeled>& losses, const std::vector<std::vector<double>>& front,
    const std::vector<double>& reference, std::vector<ModeledLimit> limits);

}  // namespace gallop::tune

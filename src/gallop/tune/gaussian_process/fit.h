#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gallop/tune/gaussian_process/kernel.h"
#include "gallop/tune/gaussian_process/lbfgs.h"

namespace gallop::tune {

/// The minimum noise variance, for numerical stability.
constexpr double kLeastNoise = 1e-6;

/// The log marginal likelihood of measured values under a kernel, without its constant, plus the
/// log prior of the kernel: -0.1 / l - 0.1 l for each inverse squared length l, Gamma(2, 1) for the
/// scale, Gamma(1.1, 30) for the noise (the priors of Optuna 5). -infinity if the covariance matrix
/// is not positive definite.
/// `gradient`, if not null, receives the derivatives by the hyperparameters, in the order inverse
/// squared lengths, scale, noise, forgetting.
/// `memory` holds buffers that are reused between calls.
struct LikelihoodMemory {
  Matrix factor, covariances, slopes, inverse_transposed, inverse;
};
double log_likelihood(const Kernel& kernel, const Inputs& inputs, std::span<const double> values,
                      std::vector<double>* gradient, LikelihoodMemory& memory);
double log_prior(const Kernel& kernel, std::vector<double>* gradient);

/// Maximum a posteriori fit of a kernel, one evaluation at a time.
class KernelFit {
 public:
  static constexpr int kMostEvaluations = 32;

  /// `values` have mean 0 and variance 1. If `is_exact`, the noise is fixed at its minimum.
  KernelFit(Inputs inputs, std::vector<double> values, const Kernel& start, bool is_exact);

  bool is_done() const { return search_.is_done(); }
  void step();
  /// The best kernel so far; the initial one if no evaluation succeeded.
  Kernel kernel() const;

  /// The initial kernel of a fit without prior information.
  static Kernel default_kernel(size_t dimensions);

 private:
  Inputs inputs_;
  std::vector<double> values_;
  bool is_exact_;
  Lbfgs search_;
  LikelihoodMemory memory_;
};

}  // namespace gallop::tune

#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gallop/tune/gaussian_process/kernel.h"
#include "gallop/tune/gaussian_process/lbfgs.h"

namespace gallop::tune {

/// No noise is smaller: it stands for what rounding does.
constexpr double kLeastNoise = 1e-6;

/// The logarithm of how likely measured values are under a kernel, without the constant, and of the
/// prior of the kernel itself: for each inverse squared length l, -0.1 / l - 0.1 l; Gamma(2, 1) for
/// the scale; Gamma(1.1, 30) for the noise (those of Optuna 5). -infinity where the matrix of
/// covariances has no factor.
/// `gradient`, if not null, becomes its derivatives by the kernel's numbers in their order: inverse
/// squared lengths, scale, noise, forgetting.
/// `memory` is kept from one call to the next.
struct LikelihoodMemory {
  Matrix factor, covariances, slopes, inverse_transposed, inverse;
};
double log_likelihood(const Kernel& kernel, const Inputs& inputs, std::span<const double> values,
                      std::vector<double>* gradient, LikelihoodMemory& memory);
double log_prior(const Kernel& kernel, std::vector<double>* gradient);

/// Finds the kernel that is most probable after measured values, evaluation by evaluation.
class KernelFit {
 public:
  static constexpr int kMostEvaluations = 32;

  /// `values` have mean 0 and variance 1. Where `is_exact`, they have no noise but the least.
  KernelFit(Inputs inputs, std::vector<double> values, const Kernel& start, bool is_exact);

  bool is_done() const { return search_.is_done(); }
  void step();
  /// The best so far; the start where nothing could be evaluated.
  Kernel kernel() const;

  /// The kernel that a search begins with where nothing is known.
  static Kernel default_kernel(size_t dimensions);

 private:
  Inputs inputs_;
  std::vector<double> values_;
  bool is_exact_;
  Lbfgs search_;
  LikelihoodMemory memory_;
};

}  // namespace gallop::tune

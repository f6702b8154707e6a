#pragma once

#include <functional>
#include <vector>

#include "gallop/tune/cma/distribution.h"
#include "gallop/tune/space.h"

namespace gallop::tune {

/// Bounds the probability of the values next to the mean's from below, for discrete dimensions
/// (Hamano et al., "CMA-ES with margin", 2022).
class CmaMargin {
 public:
  /// The boundaries of the cell of the value nearest to a coordinate; for the first and the last
  /// value both are the inner boundary. Null for continuous dimensions.
  using Limits = std::function<Range(double coordinate)>;

  explicit CmaMargin(std::vector<Limits> limits)
      : limits_(std::move(limits)), factors_(limits_.size(), 1) {}

  /// After a generation: corrects the mean and the scale of each discrete dimension.
  void correct(CmaDistribution& distribution);

  /// The point at which a sample of the distribution is evaluated: discrete dimensions are scaled.
  std::vector<double> widened(const CmaDistribution& distribution, std::vector<double> point) const;

  const std::vector<double>& factors() const { return factors_; }

 private:
  void correct(CmaDistribution& distribution, size_t dimension, double margin);

  std::vector<Limits> limits_;
  std::vector<double> factors_;  // Scale of the distance from the mean, by dimension.
};

}  // namespace gallop::tune

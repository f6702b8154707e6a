#pragma once

#include <functional>
#include <vector>

#include "gallop/tune/cma/distribution.h"
#include "gallop/tune/space.h"

namespace gallop::tune {

/// Keeps the probability of each neighbor of the value at the mean from vanishing, for dimensions
/// that have only some values (Hamano et al., "CMA-ES with margin", 2022).
class CmaMargin {
 public:
  /// The ends of what stands for the value that is nearest to a coordinate. Both are the inner end
  /// for the first and the last value. Null for a dimension that has all values.
  using Limits = std::function<Range(double coordinate)>;

  explicit CmaMargin(std::vector<Limits> limits)
      : limits_(std::move(limits)), factors_(limits_.size(), 1) {}

  /// After a generation: moves the mean, and widens or narrows what is drawn.
  void correct(CmaDistribution& distribution);

  /// Where a point of the distribution is evaluated.
  std::vector<double> widened(const CmaDistribution& distribution, std::vector<double> point) const;

  const std::vector<double>& factors() const { return factors_; }

 private:
  void correct(CmaDistribution& distribution, size_t dimension, double margin);

  std::vector<Limits> limits_;
  std::vector<double> factors_;  // By which distances from the mean are multiplied.
};

}  // namespace gallop::tune

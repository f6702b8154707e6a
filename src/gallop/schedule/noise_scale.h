#pragma once

#include <cstdint>
#include <optional>

namespace gallop::schedule {

/// The simple gradient noise scale B = tr(S) / |G|^2 with the true gradient G and the covariance S
/// of per-sample gradients: the critical batch size, beyond which larger batches bring little
/// (McCandlish et al., "An empirical model of large-batch training", 2018, appendix A.1). Unbiased
/// estimates of both come from squared gradient norms of small and big batches, averaged over all
/// that were added.
class NoiseScale {
 public:
  /// Throws InternalError unless 0 < small < big.
  NoiseScale(int64_t small, int64_t big);

  /// Adds squared norms of mean gradients over `small` and over `big` samples; the small batches
  /// may be parts of the big one, with averaged squares.
  void add(double small_square, double big_square);

  /// Means of the estimates of |G|^2 and tr(S).
  double gradient_square() const;
  double variance() const;
  /// Their ratio in samples; nothing without data, or if the estimate of |G|^2 is not positive: the
  /// noise dominates the gradient.
  std::optional<double> batch() const;

 private:
  double small_, big_;
  double gradient_squares_ = 0, variances_ = 0;
  int64_t count_ = 0;
};

}  // namespace gallop::schedule

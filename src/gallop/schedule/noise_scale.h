#pragma once

#include <cstdint>
#include <optional>

namespace gallop::schedule {

/// The simple gradient noise scale, B = tr(S) / |G|^2, of the true gradient G and the covariance S
/// of samples' gradients: the batch beyond which more samples a step bring little (McCandlish et
/// al., "An empirical model of large-batch training", 2018, appendix A.1). From squared norms of
/// the gradients of small batches and of big ones by unbiased estimates of both, each averaged over
/// all that were added.
class NoiseScale {
 public:
  /// Throws InternalError unless 0 < small < big.
  NoiseScale(int64_t small, int64_t big);

  /// Squared norms of mean gradients over `small` and over `big` samples; the small batches may be
  /// parts of the big one, and their squares averaged.
  void add(double small_square, double big_square);

  /// Means of the estimates of |G|^2 and tr(S).
  double gradient_square() const;
  double variance() const;
  /// Their ratio in samples; nothing before the first, and where the estimate of |G|^2 is not above
  /// 0: the gradient is lost in its noise.
  std::optional<double> batch() const;

 private:
  double small_, big_;
  double gradient_squares_ = 0, variances_ = 0;
  int64_t count_ = 0;
};

}  // namespace gallop::schedule

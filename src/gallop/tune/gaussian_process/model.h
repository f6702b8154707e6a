#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gallop/tune/gaussian_process/fit.h"
#include "gallop/tune/gaussian_process/posterior.h"

namespace gallop::tune {

/// What becomes of values above the median. Drawn together: logarithms of how far they are, in
/// units of how far the smallest is below, so that very large values hide no difference between
/// small ones.
enum class LargeValues { kDrawnTogether, kKept };

/// Values with mean 0 and variance 1. What is not finite becomes the largest or smallest that is,
/// NaN the largest; all are 0 where none is.
struct Standardized {
  std::vector<double> values;
  double median = 0, below = 0;    ///< Below: from the smallest to the median; 0: all are kept.
  double mean = 0, deviation = 1;  ///< Of the values, drawn together or not.

  double of(double value) const;
};
Standardized standardized(std::vector<double> values,
                          LargeValues large = LargeValues::kDrawnTogether);

/// A Gaussian process of a quantity that is measured again and again. Its kernel is fitted again
/// sixteen times while the number of measurements doubles, and is a function of the first so many
/// measurements alone: the search for it begins with the kernel of the power of two before, that
/// one's with half as many, and so on. So a model that is made later has the same kernel after few
/// fits.
/// With many measurements a fit is spread over the calls until the next one is due, and serves from
/// then on; this makes no difference to what is answered.
class Model {
 public:
  Model(std::vector<bool> categorical, bool is_exact,
        LargeValues large = LargeValues::kDrawnTogether)
      : categorical_(std::move(categorical)), is_exact_(is_exact), large_(large) {}

  /// After all measurements so far. Those of the last call are to come first again; where they do
  /// not, all is found again. At least 2.
  void update(const std::vector<std::vector<double>>& points, const std::vector<double>& values);

  Posterior& posterior() { return *posterior_; }
  const Standardized& standard() const { return standard_; }

 private:
  void forget_from(size_t size);
  std::unique_ptr<KernelFit> begun_fit(size_t size);
  const Kernel& kernel_after(size_t size);
  void go_on_fitting();

  std::vector<bool> categorical_;
  bool is_exact_;
  LargeValues large_;
  std::vector<std::vector<double>> points_;
  std::vector<double> values_;
  std::map<size_t, Kernel> kernels_;  // By the number of measurements.
  std::unique_ptr<KernelFit> fit_;    // The one that is not yet wanted.
  size_t fit_size_ = 0, posterior_kernel_ = 0;
  std::optional<Posterior> posterior_;
  Standardized standard_;
};

}  // namespace gallop::tune

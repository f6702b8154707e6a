#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gallop/tune/gaussian_process/fit.h"
#include "gallop/tune/gaussian_process/posterior.h"

namespace gallop::tune {

/// Treatment of values above the median. kDrawnTogether compresses them logarithmically, in units
/// of the distance from the minimum to the median, so that very large values do not hide the
/// differences between small ones.
enum class LargeValues { kDrawnTogether, kKept };

/// Values standardized to mean 0 and variance 1. Non-finite values are clamped to the largest or
/// smallest finite one, NaN to the largest; all are 0 if none is finite.
struct Standardized {
  std::vector<double> values;
  double median = 0, below = 0;    ///< `below`: from the minimum to the median; 0: no compression.
  double mean = 0, deviation = 1;  ///< Of the values after compression.

  double of(double value) const;
};
Standardized standardized(std::vector<double> values,
                          LargeValues large = LargeValues::kDrawnTogether);

/// A Gaussian process of a quantity with a growing number of measurements. Its kernel is refitted
/// sixteen times per doubling of that number and depends only on a prefix of the measurements: each
/// fit is warm-started from the fit at the previous power of two, recursively, so that a model that
/// is created later has the same kernel after few fits.
/// With many measurements, the steps of a fit are spread over the calls until the next one is due;
/// this does not change any prediction.
class Model {
 public:
  Model(std::vector<bool> categorical, bool is_exact,
        LargeValues large = LargeValues::kDrawnTogether)
      : categorical_(std::move(categorical)), is_exact_(is_exact), large_(large) {}

  /// Updates the model with all measurements so far, at least 2. Measurements of the last call
  /// should be a prefix; otherwise the model is refitted.
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
  std::map<size_t, Kernel> kernels_;  // By number of measurements.
  std::unique_ptr<KernelFit> fit_;    // The next fit, in progress.
  size_t fit_size_ = 0, posterior_kernel_ = 0;
  std::optional<Posterior> posterior_;
  Standardized standard_;
};

}  // namespace gallop::tune

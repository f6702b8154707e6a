#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/tune/random.h"
#include "gallop/tune/samplers/choice_axis.h"
#include "gallop/tune/samplers/kernel_sum.h"
#include "gallop/tune/samplers/parzen_axes.h"
#include "gallop/tune/space.h"

namespace gallop::tune {

/// A Parzen density over some parameters of a space: a mixture of one product kernel per trial, and
/// the prior, which is as wide as the space.
///
/// A numeric kernel is a normal distribution on the parameter's scale, truncated to the interval;
/// its bandwidth is the larger distance to its neighbors, but at least a fraction of the interval.
/// A categorical kernel raises the probability of its choice (Bergstra et al., "Algorithms for
/// hyper-parameter optimization", 2011; Watanabe, "Tree-structured Parzen estimator: understanding
/// its algorithm components", 2023). Of equal numbers, the outer two are wide and those between
/// narrow; which are the outer ones is arbitrary, as in Optuna's sorting: results are worse if the
/// last trials, which have the largest weights, are always the wide ones.
class ParzenEstimator {
 public:
  enum class Weights : uint8_t {
    kEqual,
    kFading,  ///< 1 for the last 25 trials and the prior, falling to 1 / n for the first of n.
  };

  /// `parameters` are indices in the space; each has more than one value. `context` are the indices
  /// of choices that are decided before.
  ParzenEstimator(const Space& space, std::vector<size_t> parameters, Weights weights,
                  std::vector<size_t> context = {});

  const std::vector<size_t>& parameters() const { return parameters_; }
  /// The number of kernels, without the prior.
  size_t size() const { return trials_.size(); }

  /// Adds the kernel of a trial that has none yet. All parameters and those of the context must be
  /// active at its point.
  void insert(int64_t trial, const Point& point);
  /// Removes the kernel of a trial.
  void erase(int64_t trial);

  /// Allows numeric kernels to be narrower than their minimum bandwidth by this factor, at least 1.
  void set_narrowing(double narrowing);

  /// Conditions the density on this point's choices in the context: a kernel with other choices is
  /// down-weighted by how much less likely it makes these than its own. The prior counts as one
  /// trial.
  void set_context(const Point& point);

  /// Samples the parameters; other values of the point are unchanged.
  void draw(Random& random, Point& point);
  /// The log-density at each point; for discrete parameters, the log-probability.
  std::vector<double> log_densities(const std::vector<Point>& points);
  /// The normalized weights of the kernels by trial, and of the prior.
  const std::vector<double>& weights();
  /// For each parameter, the kernel at this position (ParzenAxis::kernel).
  std::vector<std::vector<double>> kernel(size_t position);

 private:
  void refresh();

  std::vector<size_t> parameters_, context_;
  Weights kind_;
  std::vector<std::unique_ptr<ParzenAxis>> axes_;
  std::vector<ChoiceAxis> context_axes_;
  std::vector<double> context_choices_;
  std::vector<int64_t> trials_;
  double narrowing_ = 1;
  bool is_fresh_ = false;
  std::vector<double> weights_, constants_;
  KernelColumns columns_;
  MergedKernels merged_;  // Kernels of the columns, if they could be merged.
};

}  // namespace gallop::tune

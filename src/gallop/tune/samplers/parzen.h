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

/// A density over some parameters of a space: a mixture of one product of kernels for each of some
/// points, and of one as wide as the space, the prior.
///
/// The kernel of a number is a normal distribution on its scale, truncated at the interval's ends,
/// as wide as the larger gap to its neighbors but not narrower than a share of the interval; that
/// of a choice raises the probability of this choice (Bergstra et al., "Algorithms for
/// hyper-parameter optimization", 2011; Watanabe, "Tree-structured Parzen estimator: understanding
/// its algorithm components", 2023). Of equal numbers, the outer two are wide and those between
/// narrow. Which are the outer ones is left to chance, as it is to Optuna's sorting: where the last
/// trials, which weigh most, are always wide, what is found is worse.
class ParzenEstimator {
 public:
  enum class Weights : uint8_t {
    kEqual,
    kFading,  ///< Of the last 25 trials and the prior 1, falling to 1 / n for the first of n.
  };

  /// `parameters` are indices in the space; each has more than one value. `context` are those of
  /// choices that are decided before.
  ParzenEstimator(const Space& space, std::vector<size_t> parameters, Weights weights,
                  std::vector<size_t> context = {});

  const std::vector<size_t>& parameters() const { return parameters_; }
  /// How many kernels there are, without the prior.
  size_t size() const { return trials_.size(); }

  /// Adds the kernel of a trial, which has none yet and at whose point all parameters, and those of
  /// the context, are active.
  void insert(int64_t trial, const Point& point);
  /// Takes the kernel of a trial away.
  void erase(int64_t trial);

  /// Kernels of numbers may be so many times narrower than they are by themselves, at least 1.
  void set_narrowing(double narrowing);

  /// From now on it is the density of points with this one's choices in the context: a kernel that
  /// has others counts less, by how much less likely it makes these than its own. The prior counts
  /// as one trial.
  void set_context(const Point& point);

  /// Draws the parameters; what else is in the point stays.
  void draw(Random& random, Point& point);
  /// The logarithm of the density at each point; with steps, that of the probability.
  std::vector<double> log_densities(const std::vector<Point>& points);
  /// The shares of the kernels by trial, and that of the prior.
  const std::vector<double>& weights();
  /// For each parameter, what the kernel at this position is (ParzenAxis::kernel).
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
  MergedKernels merged_;  // What the columns show, where they could be merged.
};

}  // namespace gallop::tune

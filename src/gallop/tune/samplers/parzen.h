#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/tune/random.h"
#include "gallop/tune/samplers/kernel_sum.h"
#include "gallop/tune/space.h"

namespace gallop::tune {

/// One parameter of the kernels of a ParzenEstimator. Kernels are known by their position in the
/// order of their trials; the prior stands behind the last.
class ParzenAxis {
 public:
  virtual ~ParzenAxis() = default;

  virtual void insert(size_t position, int64_t trial, double value) = 0;
  virtual void erase(size_t position, int64_t trial) = 0;
  /// Computes anew what follows from the kernels after some came or went. `trials` are those of
  /// all kernels, rising; `narrowing` is ParzenEstimator's.
  virtual void refresh(const std::vector<int64_t>& trials, double narrowing) = 0;

  /// What a kernel is: center and deviation of a number, or the probability of each choice.
  virtual std::vector<double> kernel(size_t position) const = 0;
  /// A value of the kernel.
  virtual double draw(size_t kernel, Random& random) const = 0;
  /// What the axis brings into the kernels' densities, and into a query for this value.
  virtual void describe(KernelColumns& columns, std::vector<double>& constants) const = 0;
  virtual void describe(KernelQuery& query, double value) const = 0;
};

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

  /// `parameters` are indices in the space; each has more than one value.
  ParzenEstimator(const Space& space, std::vector<size_t> parameters, Weights weights);

  const std::vector<size_t>& parameters() const { return parameters_; }
  /// How many kernels there are, without the prior.
  size_t size() const { return trials_.size(); }

  /// Adds the kernel of a trial, which has none yet and at whose point all parameters are active.
  void insert(int64_t trial, const Point& point);
  /// Takes the kernel of a trial away.
  void erase(int64_t trial);

  /// Kernels of numbers may be so many times narrower than they are by themselves, at least 1.
  void set_narrowing(double narrowing);

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

  std::vector<size_t> parameters_;
  Weights kind_;
  std::vector<std::unique_ptr<ParzenAxis>> axes_;
  std::vector<int64_t> trials_;
  double narrowing_ = 1;
  bool is_fresh_ = false;
  std::vector<double> weights_, constants_;
  KernelColumns columns_;
  MergedKernels merged_;  // What the columns show, where they could be merged.
};

}  // namespace gallop::tune

#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace gallop::tune {

/// Stopping criteria of a minimization.
struct LbfgsLimits {
  int evaluations = 200;
  /// Tolerance on the largest element of the projected gradient.
  double gradient = 1e-5;
  /// Tolerance on the relative decrease of the value in one step.
  double relative_decrease = 2e-9;
};

/// Minimizes a function within bounds by L-BFGS with a history of ten (Nocedal, 1980) and
/// projection onto the bounds (Bertsekas, "Projected Newton methods", 1982). The caller evaluates
/// the function: it gets a point and returns the value there, so that evaluations of several
/// minimizations can be batched or deferred.
class Lbfgs {
 public:
  /// Empty bounds: unbounded. `start` is clamped to the bounds.
  Lbfgs(std::vector<double> start, std::vector<double> lower, std::vector<double> upper,
        const LbfgsLimits& limits = {});

  bool is_done() const { return done_; }
  /// The point to evaluate next.
  const std::vector<double>& wanted() const { return wanted_; }
  /// Passes the function's value and gradient at wanted(). A non-finite value rejects the point;
  /// its gradient is ignored.
  void tell(double value, std::span<const double> gradient);

  /// The best point so far; its value is finite once a finite value was passed.
  const std::vector<double>& best() const { return point_; }
  double best_value() const { return value_; }
  int evaluations() const { return evaluations_; }

 private:
  struct Change {
    std::vector<double> step, gradient;
    double product;  // Dot product of step and gradient change.
  };

  double bounded(size_t index, double value) const;
  bool is_free(size_t index) const;
  double projected_gradient() const;
  void begin_line();
  std::vector<double> direction() const;
  void want(double length);
  void accept(double value, std::span<const double> gradient);
  void shorten(double value, double slope);

  std::vector<double> lower_, upper_;
  LbfgsLimits limits_;
  std::vector<double> point_, gradient_, wanted_, direction_;
  double value_, length_ = 1;
  double stretch_ = 1;  // Multiplier of the next step while the function has negative curvature.
  std::deque<Change> changes_;
  int evaluations_ = 0, line_evaluations_ = 0;
  bool done_ = false, started_ = false;
};

}  // namespace gallop::tune

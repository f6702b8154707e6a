#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace gallop::tune {

/// When a minimization ends.
struct LbfgsLimits {
  int evaluations = 200;
  /// No coordinate's projected gradient is larger.
  double gradient = 1e-5;
  /// A step lowers the value by no larger share.
  double relative_decrease = 2e-9;
};

/// Minimizes a function within bounds by quasi-Newton steps with the last ten changes of its
/// gradient (L-BFGS: Nocedal, 1980), which are projected into the bounds (Bertsekas, "Projected
/// Newton methods", 1982). It does not call the function: whoever does asks for a point and tells
/// the value there, so that evaluations of several minimizations can be taken together or put off.
class Lbfgs {
 public:
  /// Empty bounds are none. `start` is moved into them.
  Lbfgs(std::vector<double> start, std::vector<double> lower, std::vector<double> upper,
        const LbfgsLimits& limits = {});

  bool is_done() const { return done_; }
  /// Where the function is wanted next.
  const std::vector<double>& wanted() const { return wanted_; }
  /// The function and its gradient there. A value that is not finite says that the point cannot be
  /// taken; the gradient does not count then.
  void tell(double value, std::span<const double> gradient);

  /// The best so far: finite once a told value was.
  const std::vector<double>& best() const { return point_; }
  double best_value() const { return value_; }
  int evaluations() const { return evaluations_; }

 private:
  struct Change {
    std::vector<double> step, gradient;
    double product;  // Of both.
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
  double stretch_ = 1;  // Of the next step, while the function curves downwards.
  std::deque<Change> changes_;
  int evaluations_ = 0, line_evaluations_ = 0;
  bool done_ = false, started_ = false;
};

}  // namespace gallop::tune

#pragma once

#include <string>
#include <vector>

#include "gallop/plot/line_plot.h"

// Only for sources of plot/.
namespace gallop::plot {

struct Tick {
  double value;
  std::string label;
};

/// An axis with its bounds and the values that are written beside it.
class AxisTicks {
 public:
  /// `values`: all that is to be shown. At most about `most` ticks. Where `widen`, the bounds go on
  /// to the next tick and, if that is not far, to 0.
  AxisTicks(const Axis& axis, const std::vector<double>& values, int most, bool widen);

  /// Where a value lies between the bounds, from 0 to 1; NaN where it cannot be shown.
  double place(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void find_bounds(const Axis& axis, const std::vector<double>& values);
  void make_linear(const Axis& axis, int most, bool widen);
  void make_log(int most);

  bool log_;
  double low_ = 0, high_ = 1;
  std::vector<Tick> ticks_;
};

AxisTicks x_ticks(const LinePlot& plot, int most);
AxisTicks y_ticks(const LinePlot& plot, int most);

/// 0.00001 as "1e-5".
std::string tick_label(double value);

}  // namespace gallop::plot

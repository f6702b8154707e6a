#pragma once

#include <string>
#include <vector>

#include "gallop/plot/plot.h"

// Internal to plot/.
namespace gallop::plot {

struct Tick {
  double value;
  std::string label;
};

/// An axis with its bounds and labeled ticks.
class AxisTicks {
 public:
  /// `values`: all values to be shown. Uses about `most` ticks at most. With `widen`, the bounds
  /// extend to the next tick and, if close, to 0. `margin` is the fraction of the axis that stays
  /// free beyond each bound.
  AxisTicks(const Axis& axis, const std::vector<double>& values, int most, bool widen,
            double margin = 0);

  /// The position of a value between the ends of the axis, from 0 to 1; NaN if it cannot be shown.
  double place(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }
  double low() const { return low_; }
  double high() const { return high_; }
  /// The number of categories; 0 for a numeric axis.
  size_t categories() const { return categories_; }

 private:
  void find_bounds(const Axis& axis, const std::vector<double>& values);
  void make_linear(const Axis& axis, int most, bool widen);
  void make_log(const Axis& axis, int most);

  bool log_;
  double margin_;
  size_t categories_;
  double low_ = 0, high_ = 1;
  std::vector<Tick> ticks_;
};

AxisTicks x_ticks(const XyPlot& plot, int most);
AxisTicks y_ticks(const XyPlot& plot, int most);
AxisTicks axis_ticks(const ParallelPlot& plot, size_t axis, int most);

/// 0.00001 as "1e-5".
std::string tick_label(double value);
/// The same with three significant digits.
std::string short_label(double value);

}  // namespace gallop::plot

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/plot/plot.h"

// Only for sources of plot/.
namespace gallop::plot {

/// Values in a few steps, the last of which stands out.
class ColorLevels {
 public:
  /// `values`: all that are to be shown.
  ColorLevels(const Color& color, const std::vector<double>& values, int levels);
  static ColorLevels of(const XyPlot& plot, int levels);
  static ColorLevels of(const ParallelPlot& plot, int levels);
  static ColorLevels of(const HeatMap& plot, int levels);

  /// From 0 to levels - 1; nothing for NaN.
  std::optional<int> level(double value) const;
  int count() const { return levels_; }
  /// The value at which a level begins, on the side of level 0; that of `count()` ends the last.
  double edge(int level) const;
  /// The same as it is written.
  std::string edge_label(int level) const;
  const std::string& label() const { return label_; }
  /// Whether there is anything to show.
  bool is_used() const { return used_; }

 private:
  std::string label_;
  double first_ = 0, last_ = 1;  // Of level 0 and of the last one.
  int levels_;
  bool whole_;
  bool used_ = false;
};

}  // namespace gallop::plot

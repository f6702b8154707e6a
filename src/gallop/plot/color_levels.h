#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/plot/plot.h"

// Internal to plot/.
namespace gallop::plot {

/// Maps values to a few color levels, the last of which stands out.
class ColorLevels {
 public:
  /// `values`: all values to be shown.
  ColorLevels(const Color& color, const std::vector<double>& values, int levels);
  static ColorLevels of(const XyPlot& plot, int levels);
  static ColorLevels of(const ParallelPlot& plot, int levels);
  static ColorLevels of(const HeatMap& plot, int levels);

  /// From 0 to levels - 1; nothing for NaN.
  std::optional<int> level(double value) const;
  int count() const { return levels_; }
  /// The lower bound of a level, towards level 0; edge(count()) is the end of the last one.
  double edge(int level) const;
  /// edge() as a label.
  std::string edge_label(int level) const;
  const std::string& label() const { return label_; }
  /// Whether there are values to show.
  bool is_used() const { return used_; }

 private:
  std::string label_;
  double first_ = 0, last_ = 1;  // Bounds of the first and of the last level.
  int levels_;
  bool whole_;
  bool used_ = false;
};

}  // namespace gallop::plot

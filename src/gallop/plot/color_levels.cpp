#include "gallop/plot/color_levels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gallop/plot/ticks.h"

namespace gallop::plot {

ColorLevels::ColorLevels(const Color& color, const std::vector<double>& values, int levels)
    : label_(color.label), levels_(levels), whole_(color.whole) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    used_ = true;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!used_) return;
  first_ = color.min.value_or(low);
  last_ = color.max.value_or(high);
  if (color.low_stands_out) std::swap(first_, last_);
}

ColorLevels ColorLevels::of(const XyPlot& plot, int levels) {
  std::vector<double> values;
  if (plot.surface) values = plot.surface->values;
  for (const Points& points : plot.points) {
    values.insert(values.end(), points.values.begin(), points.values.end());
  }
  return {plot.color, values, levels};
}

ColorLevels ColorLevels::of(const ParallelPlot& plot, int levels) {
  return {plot.color, plot.values, levels};
}

ColorLevels ColorLevels::of(const HeatMap& plot, int levels) {
  return {plot.color, plot.values, levels};
}

std::optional<int> ColorLevels::level(double value) const {
  if (std::isnan(value)) return std::nullopt;
  const double share = first_ == last_ ? 1 : (value - first_) / (last_ - first_);
  return static_cast<int>(std::clamp(std::floor(share * levels_), 0.0, levels_ - 1.0));
}

double ColorLevels::edge(int level) const {
  return std::lerp(first_, last_, static_cast<double>(level) / levels_);
}

std::string ColorLevels::edge_label(int level) const {
  return whole_ ? tick_label(std::floor(edge(level))) : short_label(edge(level));
}

}  // namespace gallop::plot

#pragma once

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/plot/color_levels.h"
#include "gallop/plot/plot.h"

// Internal to plot/.
namespace gallop::plot {

/// The layout of a plot in pixels.
struct PanelSize {
  double width, height;
  double left, right, top, bottom;  ///< Margins around the axes.
  int x_ticks, y_ticks;
  double radius;  ///< Of points.
  double legend;  ///< Distance of the legend above the axes.
};

/// Number of color steps in SVG.
constexpr int kColorLevels = 12;

/// A legend entry: a line, or points of some shape.
struct LegendEntry {
  std::string name;
  std::string style;  ///< CSS classes of its path.
  bool is_line = false;
  Shape shape = Shape::kDot;
};

/// The area of one plot in an SVG file, with drawing functions common to all kinds of plots.
class SvgPanel {
 public:
  SvgPanel(const PanelSize& size, double x, double y, std::string& out);

  const PanelSize& size() const { return size_; }
  double left() const { return left_; }
  double right() const { return right_; }
  double top() const { return top_; }
  double bottom() const { return bottom_; }
  /// Positions of fractions from 0 to 1, upwards.
  double x_of(double place) const;
  double y_of(double place) const;

  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  /// Escaped text.
  void add_text(double x, double y, const char* anchor, std::string_view text,
                const char* attributes = "");
  void add_line(const char* style, double x1, double y1, double x2, double y2);
  /// A path with a tooltip, unless `label` is empty.
  void add_path(std::string_view style, std::string_view path, std::string_view label = "");
  void add_title(std::string_view title);
  /// A legend, right-aligned at this height, with a color bar if colors are used.
  void add_legend(const std::vector<LegendEntry>& entries, const ColorLevels& colors, double y);

  /// The path of a mark.
  std::string mark(Shape shape, double x, double y) const;
  /// The path of a mark for a point beyond an end of an axis.
  std::string arrow(bool up, double x, double y) const;

 private:
  double add_color_bar(const ColorLevels& colors, double y);

  const PanelSize& size_;
  double left_, right_, top_, bottom_;
  std::string& out_;
};

/// The CSS classes of a shape, besides those of its color.
const char* shape_style(Shape shape);
/// "l7"
std::string level_style(int level);
/// The CSS class of the plot's i-th line or points, or of faint ones.
const char* tone_style(size_t index, bool faint);

/// The number of characters that fit.
size_t characters_in(double pixels);

void draw(const XyPlot& plot, SvgPanel& panel);
void draw(const BarPlot& plot, SvgPanel& panel);
/// The height at which all bars have their full thickness.
double height_of_bars(const BarPlot& plot, const PanelSize& size);
void draw(const ParallelPlot& plot, SvgPanel& panel);
void draw(const HeatMap& plot, SvgPanel& panel);
/// The height for this width.
double height_of_heat_map(const HeatMap& plot, const PanelSize& size);

}  // namespace gallop::plot

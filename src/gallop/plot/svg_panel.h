#pragma once

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/plot/color_levels.h"
#include "gallop/plot/plot.h"

// Only for sources of plot/.
namespace gallop::plot {

/// Of one plot in a drawing, in pixels.
struct PanelSize {
  double width, height;
  double left, right, top, bottom;  ///< Around the axes.
  int x_ticks, y_ticks;
  double radius;  ///< Of points.
  double legend;  ///< How far it is above the axes.
};

/// Steps of color in a drawing.
constexpr int kColorLevels = 12;

/// What a legend names: a line, or points of some shape.
struct LegendEntry {
  std::string name;
  std::string style;  ///< Classes of its path.
  bool is_line = false;
  Shape shape = Shape::kDot;
};

/// The place of one plot in an SVG file, and what all kinds of plots draw with.
class SvgPanel {
 public:
  SvgPanel(const PanelSize& size, double x, double y, std::string& out);

  const PanelSize& size() const { return size_; }
  double left() const { return left_; }
  double right() const { return right_; }
  double top() const { return top_; }
  double bottom() const { return bottom_; }
  /// Of shares from 0 to 1, upwards.
  double x_of(double place) const;
  double y_of(double place) const;

  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  /// Text as it is, whatever it holds.
  void add_text(double x, double y, const char* anchor, std::string_view text,
                const char* attributes = "");
  void add_line(const char* style, double x1, double y1, double x2, double y2);
  /// A path, which shows `label` to whoever points at it unless it is empty.
  void add_path(std::string_view style, std::string_view path, std::string_view label = "");
  void add_title(std::string_view title);
  /// On the right at this height: what the entries are, and what the colors say where they are
  /// used.
  void add_legend(const std::vector<LegendEntry>& entries, const ColorLevels& colors, double y);

  /// The path of one mark.
  std::string mark(Shape shape, double x, double y) const;
  /// The same of one beyond an end of an axis, which points there.
  std::string arrow(bool up, double x, double y) const;

 private:
  double add_color_bar(const ColorLevels& colors, double y);

  const PanelSize& size_;
  double left_, right_, top_, bottom_;
  std::string& out_;
};

/// The classes of what a shape is drawn with, beside those of its color.
const char* shape_style(Shape shape);
/// "l7"
std::string level_style(int level);
/// The color of the plot's i-th line or points, or of what is faint.
const char* tone_style(size_t index, bool faint);

/// How many characters there is room for.
size_t characters_in(double pixels);

void draw(const XyPlot& plot, SvgPanel& panel);
void draw(const BarPlot& plot, SvgPanel& panel);
/// With which all bars have their whole width.
double height_of_bars(const BarPlot& plot, const PanelSize& size);
void draw(const ParallelPlot& plot, SvgPanel& panel);
void draw(const HeatMap& plot, SvgPanel& panel);
/// That it has with this width.
double height_of_heat_map(const HeatMap& plot, const PanelSize& size);

}  // namespace gallop::plot

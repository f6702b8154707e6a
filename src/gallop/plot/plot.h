#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gallop::plot {

enum class Scale { kLinear, kLog };

/// An axis. Missing bounds are those of the data; a logarithmic axis omits values that are not
/// positive.
struct Axis {
  std::string label;
  Scale scale = Scale::kLinear;
  std::optional<double> min{};
  std::optional<double> max{};
  /// If set, values are indices of categories, and all fields above but the label are ignored.
  std::vector<std::string> categories{};
  bool whole = false;  ///< Only integer ticks.
};

enum class Weight {
  kPlain,
  kThin,   ///< For many lines.
  kFaint,  ///< For secondary data.
};

/// Points connected by a line, in order. A non-finite point leaves a gap.
struct Series {
  std::string name;  ///< Name in the legend.
  std::vector<double> x;
  std::vector<double> y;
  Weight weight = Weight::kPlain;
  bool filled = false;  ///< The enclosed area is filled in SVG, as in a histogram.
};

/// A histogram as an outline: `heights` between `edges`, of which there is one more.
Series steps_of(std::string name, const std::vector<double>& edges,
                const std::vector<double>& heights);

enum class Shape { kDot, kRing, kCross };

/// Scatter points. Points beyond the bounds of the y axis are drawn as triangles at its edge.
struct Points {
  std::string name;  ///< Name in the legend.
  std::vector<double> x;
  std::vector<double> y;
  Shape shape = Shape::kDot;
  bool faint = false;
  std::vector<double> values{};       ///< One per point, shown by color; or none.
  std::vector<std::string> labels{};  ///< Tooltips, one per point; or none.
};

/// A surface interpolated between sample points: linear on their Delaunay triangulation, and along
/// lines if an axis has categories. Undefined outside of the triangulation.
struct Surface {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> values;
};

/// A color scale; in text, marks. Values beyond the bounds are clamped.
struct Color {
  std::string label{};
  std::optional<double> min{};
  std::optional<double> max{};
  bool low_stands_out = false;  ///< Low values stand out instead of high ones.
  bool whole = false;           ///< Only integer labels.
};

/// A highlighted position on the x axis.
struct Mark {
  double x = 0;
  std::string label;
};

/// Lines, points and a surface. Earlier items are drawn on top of later ones, points on top of
/// lines.
struct XyPlot {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::vector<Mark> marks{};
  std::vector<Points> points{};
  std::optional<Surface> surface{};
  Color color{};  ///< For the surface and points with values.
};

struct Bar {
  std::string label;
  double value = 0;  ///< At least 0.
  std::string text;  ///< Label of the value.
  double begin = 0;  ///< Where it begins, at most `value`; above 0 in a waterfall.
};

/// Horizontal bars; the longest one takes the available width.
struct BarPlot {
  std::string title;
  std::vector<Bar> bars;
};

/// Parallel coordinates: one axis per column, and one line across them per row (Inselberg, "The
/// plane with parallel coordinates", 1985).
struct ParallelPlot {
  std::string title;
  std::vector<Axis> axes;
  std::vector<std::vector<double>> rows;  ///< One value per axis; NaN for none.
  std::vector<double> values;             ///< One per row, shown by color.
  std::vector<std::string> labels{};      ///< Tooltips, one per row.
  Color color{};
};

/// A matrix whose values are shown by color.
struct HeatMap {
  std::string title;
  std::string row_label, column_label;  ///< Titles of rows and columns.
  std::vector<std::string> rows, columns;
  std::vector<double> values;  ///< Row-major; a cell without a finite value is empty.
  std::vector<std::string>
      texts{};  ///< One per cell, drawn into cells that are wide enough; or none.
  std::vector<std::string> labels{};  ///< Tooltips, one per cell; or none.
  Color color{};
};

using Plot = std::variant<XyPlot, BarPlot, ParallelPlot, HeatMap>;

/// Options of a text plot.
struct TextStyle {
  int columns = 80;
  int rows = 14;        ///< Height of the drawing; bar plots have one row per bar.
  bool unicode = true;  ///< Otherwise only ASCII characters.
};

/// Renders a plot as lines of text. A single series is drawn in Braille dots of a quarter row,
/// several in one character each. The minimum width is 30 columns.
std::string to_text(const XyPlot& plot, const TextStyle& style);
std::string to_text(const BarPlot& plot, const TextStyle& style);
/// If not all axes fit side by side, further blocks repeat the first axis.
std::string to_text(const ParallelPlot& plot, const TextStyle& style);
/// With texts in its cells if they fit, otherwise with shades; rows and columns that do not fit are
/// omitted with a note.
std::string to_text(const HeatMap& plot, const TextStyle& style);
std::string to_text(const Plot& plot, const TextStyle& style);

/// Renders plots as one SVG file in rows of `columns`, light or dark by the system's setting.
/// Throws UsageError if there are none.
std::string to_svg(const std::vector<XyPlot>& plots, int columns = 1);

/// Plots side by side.
struct Row {
  std::vector<Plot> plots;
  size_t columns = 1;  ///< Maximum number of columns, at most three.
};

/// Rows of plots with a heading.
struct Page {
  std::string title;  ///< Empty: no heading.
  std::vector<Row> rows;
};

/// Renders a page as one SVG file, as above. Throws UsageError for a row without plots, or with too
/// many.
std::string to_svg(const Page& page);

}  // namespace gallop::plot

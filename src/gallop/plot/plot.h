#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gallop::plot {

enum class Scale { kLinear, kLog };

/// One direction of a plot. Bounds that are not given are those of the data; a logarithmic axis
/// leaves out what is not above 0.
struct Axis {
  std::string label;
  Scale scale = Scale::kLinear;
  std::optional<double> min{};
  std::optional<double> max{};
  /// Values are indices of these then, and nothing else above counts but the label.
  std::vector<std::string> categories{};
  bool whole = false;  ///< Only whole numbers are written beside it.
};

enum class Weight {
  kPlain,
  kThin,   ///< For lines of which there are many.
  kFaint,  ///< For what is there, but is not looked for.
};

/// Points that are joined by a line, in their order. A point that is not finite leaves a gap.
struct Series {
  std::string name;  ///< For the legend.
  std::vector<double> x;
  std::vector<double> y;
  Weight weight = Weight::kPlain;
  bool filled = false;  ///< What the line encloses is shaded in SVG, as in a histogram.
};

/// A histogram as a line that encloses it: `heights` between `edges`, which are one more.
Series steps_of(std::string name, const std::vector<double>& edges,
                const std::vector<double>& heights);

enum class Shape { kDot, kRing, kCross };

/// Places that are marked, each for itself. What lies beyond the bounds of the y axis is marked at
/// its edge by a triangle.
struct Points {
  std::string name;  ///< For the legend.
  std::vector<double> x;
  std::vector<double> y;
  Shape shape = Shape::kDot;
  bool faint = false;
  std::vector<double> values{};       ///< One each, shown by color; or none.
  std::vector<std::string> labels{};  ///< One each, shown where a reader points at it; or none.
};

/// A value for each place of a plane, by those at some places: linear over the triangles between
/// them (Delaunay's), and along lines where an axis has categories. There is none beyond them.
struct Surface {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> values;
};

/// How values are shown by color, and in text by marks. Values beyond the bounds count as those.
struct Color {
  std::string label{};
  std::optional<double> min{};
  std::optional<double> max{};
  bool low_stands_out = false;  ///< Else what is high does.
  bool whole = false;           ///< Only whole numbers are written beside them.
};

/// A place on the x axis that is pointed out.
struct Mark {
  double x = 0;
  std::string label;
};

/// Lines, points and a surface in a plane. Earlier ones lie above later ones, points above lines.
struct XyPlot {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::vector<Mark> marks{};
  std::vector<Points> points{};
  std::optional<Surface> surface{};
  Color color{};  ///< Of the surface and of points with values.
};

struct Bar {
  std::string label;
  double value = 0;  ///< At least 0.
  std::string text;  ///< The same, written beside it.
};

/// Bars one below the other; the longest is as long as there is room.
struct BarPlot {
  std::string title;
  std::vector<Bar> bars;
};

/// Parallel coordinates: an axis for each of several numbers, and a line across them for each of
/// several rows (Inselberg, "The plane with parallel coordinates", 1985).
struct ParallelPlot {
  std::string title;
  std::vector<Axis> axes;
  std::vector<std::vector<double>> rows;  ///< A number for each axis; NaN where it has none.
  std::vector<double> values;             ///< One for each row, shown by color.
  std::vector<std::string> labels{};      ///< One for each row, shown where a reader points at it.
  Color color{};
};

/// A table whose numbers are shown by color: rows downwards, columns to the right.
struct HeatMap {
  std::string title;
  std::string row_label, column_label;  ///< What rows and columns are.
  std::vector<std::string> rows, columns;
  std::vector<double> values;  ///< Row by row; a cell without a finite value is empty.
  std::vector<std::string>
      texts{};  ///< One each, written into cells that are wide enough; or none.
  std::vector<std::string> labels{};  ///< One each, shown where a reader points at it; or none.
  Color color{};
};

using Plot = std::variant<XyPlot, BarPlot, ParallelPlot, HeatMap>;

/// What a plot in text has at its disposal.
struct TextStyle {
  int columns = 80;
  int rows = 14;        ///< Of the drawing itself; of bars there are as many as there are.
  bool unicode = true;  ///< Else characters of ASCII only.
};

/// The plot as lines of text, each ending with a line feed. One series is drawn in dots of a
/// quarter of a row, several in a character each. Below 30 columns it is as wide as that.
std::string to_text(const XyPlot& plot, const TextStyle& style);
std::string to_text(const BarPlot& plot, const TextStyle& style);
/// Where not all axes are found room for side by side, the first one stands again before the rest.
std::string to_text(const ParallelPlot& plot, const TextStyle& style);
/// With texts in its cells where there is room, else with shades; what has no room at all is left
/// out, which is said.
std::string to_text(const HeatMap& plot, const TextStyle& style);
std::string to_text(const Plot& plot, const TextStyle& style);

/// Plots as one SVG file for a browser or a page, in rows of `columns`, in light or dark as the
/// reader's system is. Throws UsageError where there is none.
std::string to_svg(const std::vector<XyPlot>& plots, int columns = 1);

/// Plots side by side.
struct Row {
  std::vector<Plot> plots;
  size_t columns = 1;  ///< So many have room, at most three; there may be fewer.
};

/// Rows of plots below one another, with a heading.
struct Page {
  std::string title;  ///< Empty for no heading.
  std::vector<Row> rows;
};

/// A page as one SVG file, as above. Throws UsageError where a row has no plot, or more than have
/// room.
std::string to_svg(const Page& page);

}  // namespace gallop::plot

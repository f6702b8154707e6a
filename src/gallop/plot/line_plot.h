#pragma once

#include <optional>
#include <string>
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
};

/// Points that are joined by a line, in their order. A point that is not finite leaves a gap.
struct Series {
  std::string name;  ///< For the legend.
  std::vector<double> x;
  std::vector<double> y;
};

/// A place on the x axis that is pointed out.
struct Mark {
  double x = 0;
  std::string label;
};

struct LinePlot {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::vector<Mark> marks{};
};

/// What a plot in text has at its disposal.
struct TextStyle {
  int columns = 80;
  int rows = 14;        ///< Of the drawing itself.
  bool unicode = true;  ///< Else characters of ASCII only.
};

/// The plot as lines of text, each ending with a line feed. One series is drawn in dots of a
/// quarter of a row, several in a character each. Below 30 columns it is as wide as that.
std::string to_text(const LinePlot& plot, const TextStyle& style);

/// Plots as one SVG file for a browser or a page, in rows of `columns`, in light or dark as the
/// reader's system is. Throws UsageError where there is none.
std::string to_svg(const std::vector<LinePlot>& plots, int columns = 1);

}  // namespace gallop::plot

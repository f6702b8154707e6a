#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/plot/ticks.h"

namespace gallop::plot {

namespace {

// Of one plot, in pixels: large where it is alone, else small.
struct Size {
  double width, height;
  double left, right, top, bottom;  // Around the drawing.
  int x_ticks, y_ticks;
};
constexpr Size kLarge = {720, 400, 64, 24, 56, 52, 9, 6};
constexpr Size kSmall = {280, 194, 48, 14, 44, 40, 5, 4};

constexpr double kEdge = 8;         // Around all plots.
constexpr double kCharacter = 7.2;  // Width of one, about.

// Told apart by people who see few colors too.
constexpr std::array<const char*, 4> kClasses = {"a", "b", "c", "d"};
constexpr const char* kStyle = R"css(
svg { background: #ffffff; }
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #5f6b7a; }
text.title { font-size: 14px; font-weight: 600; fill: #1c2127; }
.small text { font-size: 11px; }
.small text.title { font-size: 12.5px; }
.grid { stroke: #e3e7ec; }
.frame { stroke: #97a1ad; }
text.mark-label { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
path { fill: none; stroke-width: 2; stroke-linejoin: round; }
.a { stroke: #0f766e; } .b { stroke: #b45309; } .c { stroke: #4477cc; } .d { stroke: #8e5bc0; }
.mark { stroke: #cc5544; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
  svg { background: #15191e; }
  text { fill: #97a1ad; } text.title { fill: #dfe4ea; }
  text.mark-label { stroke: #15191e; }
  .grid { stroke: #262d35; } .frame { stroke: #66707c; }
  .a { stroke: #2dd4bf; } .b { stroke: #f59e0b; } .c { stroke: #7aa2f7; } .d { stroke: #c099ff; }
  .mark { stroke: #ff8a75; }
}
)css";

struct Point {
  double x, y;
};

// Writes a path. Leaves out points that lie on the line between others, to kTolerance.
class Pen {
 public:
  void go_to(Point point) {
    if (!down_) {
      write('M', point);
      down_ = true;
      return;
    }
    if (last_ && !goes_on_to(point)) write_last();
    narrow(point);
    last_ = point;
  }

  void lift() {
    if (last_) write_last();
    down_ = false;
  }

  std::string take() {
    lift();
    return std::move(path_);
  }

 private:
  static constexpr double kTolerance = 0.05;  // Pixels.

  void write(char command, Point point) {
    path_ += fmt::format("{}{:.1f} {:.1f}", command, point.x, point.y);
    corner_ = point;
    low_ = -std::numeric_limits<double>::infinity();
    high_ = -low_;
    farthest_ = 0;
  }
  void write_last() {
    write('L', *last_);
    last_.reset();
  }

  double direction_of(Point point) const {
    return std::atan2(point.y - corner_.y, point.x - corner_.x);
  }
  double distance_of(Point point) const {
    return std::hypot(point.x - corner_.x, point.y - corner_.y);
  }

  // Whether all points since the corner lie on the way to this one.
  bool goes_on_to(Point point) const {
    const double direction = direction_of(point);
    return direction >= low_ && direction <= high_ && distance_of(point) >= farthest_;
  }
  void narrow(Point point) {
    farthest_ = distance_of(point);
    if (farthest_ <= kTolerance) return;
    const double direction = direction_of(point), slack = std::asin(kTolerance / farthest_);
    low_ = std::max(low_, direction - slack);
    high_ = std::min(high_, direction + slack);
  }

  std::string path_;
  bool down_ = false;
  Point corner_{};             // The last one written.
  std::optional<Point> last_;  // Not written yet.
  double low_ = 0, high_ = 0;  // Directions from the corner that pass by all points since.
  double farthest_ = 0;
};

class SvgPlot {
 public:
  SvgPlot(const LinePlot& plot, const Size& size, double x, double y, std::string& out)
      : plot_(plot),
        size_(size),
        left_(x + size.left),
        right_(x + size.width - size.right),
        top_(y + size.top),
        bottom_(y + size.height - size.bottom),
        x_(x_ticks(plot, size.x_ticks)),
        y_(y_ticks(plot, size.y_ticks)),
        out_(out) {}

  void draw() {
    draw_titles();
    draw_grid();
    for (size_t i = 0; i < plot_.marks.size(); ++i) draw_mark(plot_.marks[i], i);
    for (size_t i = 0; i < plot_.series.size(); ++i) draw_series(plot_.series[i], i);
    if (plot_.series.size() > 1) draw_legend();
  }

 private:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  void add_text(double x, double y, const char* anchor, const std::string& text,
                const char* style = "") {
    add("<text {}x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", style, x, y, anchor,
        xml_text(text));
  }
  void add_line(const char* style, double x1, double y1, double x2, double y2) {
    add("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style, x1,
        y1, x2, y2);
  }

  double x_of(double place) const { return std::lerp(left_, right_, place); }
  double y_of(double place) const { return std::lerp(bottom_, top_, place); }

  void draw_titles() {
    const double x = left_ - size_.left + kEdge;
    add_text(x, top_ - size_.top + 20, "start", plot_.title, "class=\"title\" ");
    if (!plot_.y.label.empty()) add_text(x, top_ - 10, "start", plot_.y.label);
    if (!plot_.x.label.empty()) {
      add_text((left_ + right_) / 2, bottom_ + 34, "middle", plot_.x.label);
    }
  }

  void draw_grid() {
    for (const Tick& tick : y_.ticks()) {
      const double y = y_of(y_.place(tick.value));
      add_line("grid", left_, y, right_, y);
      add_text(left_ - 7, y + 4, "end", tick.label);
    }
    for (const Tick& tick : x_.ticks()) {
      const double x = x_of(x_.place(tick.value));
      add_line("grid", x, top_, x, bottom_);
      add_text(x, bottom_ + 17, "middle", tick.label);
    }
    add_line("frame", left_, bottom_, right_, bottom_);
  }

  // The labels of several marks stand below one another.
  void draw_mark(const Mark& mark, size_t index) {
    const double place = x_.place(mark.x);
    if (!(place >= 0 && place <= 1)) return;
    const double x = x_of(place), y = top_ + 14 + 16 * static_cast<double>(index);
    add_line("mark", x, top_, x, bottom_);
    const std::string text = fmt::format("{}: {}", mark.label, tick_label(mark.x));
    const bool fits = x + 6 + kCharacter * static_cast<double>(text.size()) < right_;
    add_text(fits ? x + 6 : x - 6, y, fits ? "start" : "end", text, "class=\"mark-label\" ");
  }

  void draw_series(const Series& series, size_t index) {
    Pen pen;
    for (size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
      const double place = x_.place(series.x[i]), height = y_.place(series.y[i]);
      if (place >= 0 && place <= 1 && height >= -0.02 && height <= 1.02) {
        pen.go_to({x_of(place), y_of(height)});
      } else {
        pen.lift();
      }
    }
    add("<path class=\"{}\" d=\"{}\"/>\n", kClasses[index % kClasses.size()], pen.take());
  }

  void draw_legend() {
    double x = right_;
    for (size_t i = plot_.series.size(); i-- > 0;) {
      const std::string& name = plot_.series[i].name;
      add_text(x, top_ - 10, "end", name);
      x -= kCharacter * static_cast<double>(name.size()) + 6;
      add("<path class=\"{}\" d=\"M{:.1f} {:.1f}h-16\"/>\n", kClasses[i % kClasses.size()], x,
          top_ - 14);
      x -= 30;
    }
  }

  const LinePlot& plot_;
  const Size& size_;
  double left_, right_, top_, bottom_;
  AxisTicks x_, y_;
  std::string& out_;
};

}  // namespace

std::string to_svg(const std::vector<LinePlot>& plots, int columns) {
  if (plots.empty() || columns < 1) throw UsageError("there is nothing to plot");
  const Size& size = columns == 1 ? kLarge : kSmall;
  const auto across = std::min(plots.size(), static_cast<size_t>(columns));
  const size_t down = (plots.size() + across - 1) / across;
  const double width = size.width * static_cast<double>(across) + 2 * kEdge;
  const double height = size.height * static_cast<double>(down) + 2 * kEdge;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
      "<g class=\"{4}\">\n",
      width, height, xml_text(plots.front().title), kStyle, columns == 1 ? "large" : "small");
  for (size_t i = 0; i < plots.size(); ++i) {
    const size_t row = i / across, column = i % across;
    SvgPlot(plots[i], size, kEdge + size.width * static_cast<double>(column),
            kEdge + size.height * static_cast<double>(row), out)
        .draw();
  }
  return out + "</g>\n</svg>\n";
}

}  // namespace gallop::plot

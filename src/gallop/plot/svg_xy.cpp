#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "gallop/plot/labels.h"
#include "gallop/plot/surface.h"
#include "gallop/plot/svg_panel.h"
#include "gallop/plot/ticks.h"

namespace gallop::plot {

namespace {

struct Point {
  double x, y;
};

// Builds a path. Omits points that lie on the line between others, within kTolerance.
class Pen {
 public:
  void go_to(Point point) {
    if (!down_) {
      write('M', point);
      down_ = alone_ = true;
      return;
    }
    if (last_ && !goes_on_to(point)) write_last();
    narrow(point);
    last_ = point;
    alone_ = false;
  }

  void lift() {
    if (last_) {
      write_last();
    } else if (down_ && alone_) {
      path_ += "h0";  // A dot.
    }
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

  // Whether all points since the corner lie on the line to this point.
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
  bool alone_ = false;         // Nothing is connected to the corner yet.
  Point corner_{};             // The last point written.
  std::optional<Point> last_;  // Not written yet.
  double low_ = 0, high_ = 0;  // Range of directions from the corner that pass all points since.
  double farthest_ = 0;
};

class XyDrawing {
 public:
  XyDrawing(const XyPlot& plot, SvgPanel& panel)
      : plot_(plot),
        panel_(panel),
        x_(x_ticks(plot, panel.size().x_ticks)),
        y_(y_ticks(plot, panel.size().y_ticks)),
        colors_(ColorLevels::of(plot, kColorLevels)) {}

  void draw() {
    draw_titles();
    draw_grid();
    if (plot_.surface) draw_surface(*plot_.surface);
    for (size_t i = 0; i < plot_.marks.size(); ++i) draw_mark(plot_.marks[i], i);
    for (size_t i = plot_.series.size(); i-- > 0;) draw_series(plot_.series[i], i);
    for (size_t i = plot_.points.size(); i-- > 0;) draw_points(plot_.points[i], i);
    draw_legend();
  }

 private:
  double x_of(double place) const { return panel_.x_of(place); }
  double y_of(double place) const { return panel_.y_of(place); }

  // The color of a series or points, assigned in turn. The first color is reserved for lines, as
  // surfaces use it as well.
  std::string line_style(size_t index) const {
    const Weight weight = plot_.series[index].weight;
    return std::string(tone_style(index, weight == Weight::kFaint)) +
           (weight == Weight::kPlain ? "" : " thin") +
           (plot_.series[index].filled ? " filled" : "");
  }
  const char* points_style(size_t index) const {
    return tone_style(std::max<size_t>(1, plot_.series.size()) + index, plot_.points[index].faint);
  }

  void draw_titles() {
    panel_.add_title(plot_.title);
    if (!plot_.y.label.empty()) {
      panel_.add_text(panel_.left() - panel_.size().left + 8, panel_.top() - 10, "start",
                      plot_.y.label);
    }
    if (!plot_.x.label.empty()) {
      panel_.add_text((panel_.left() + panel_.right()) / 2, panel_.bottom() + 34, "middle",
                      plot_.x.label);
    }
  }

  void draw_grid() {
    const size_t beside = characters_in(panel_.size().left - 7);
    for (const Tick& tick : y_.ticks()) {
      const double y = y_of(y_.place(tick.value));
      panel_.add_line("grid", panel_.left(), y, panel_.right(), y);
      panel_.add_text(panel_.left() - 7, y + 4, "end", shortened(tick.label, beside, "…"));
    }
    const double width = panel_.right() - panel_.left();
    const size_t below =
        characters_in(width / static_cast<double>(std::max<size_t>(1, x_.categories())) - 6);
    for (const Tick& tick : x_.ticks()) {
      const double x = x_of(x_.place(tick.value));
      panel_.add_line("grid", x, panel_.top(), x, panel_.bottom());
      panel_.add_text(x, panel_.bottom() + 17, "middle", shortened(tick.label, below, "…"));
    }
    panel_.add_line("frame", panel_.left(), panel_.bottom(), panel_.right(), panel_.bottom());
  }

  // Drawn in cells of a few pixels; those of one level form one path.
  void draw_surface(const Surface& surface) {
    constexpr double kCell = 3;
    const double width = panel_.right() - panel_.left(), height = panel_.bottom() - panel_.top();
    const auto columns = static_cast<int>(width / kCell), rows = static_cast<int>(height / kCell);
    const std::vector<double> values = sampled(surface, x_, y_, columns, rows);
    std::map<int, std::string> paths;
    for (int row = 0; row < rows; ++row) {
      const double low = y_of(static_cast<double>(row) / rows), high = y_of((row + 1.0) / rows);
      for (int column = 0; column < columns;) {
        const auto level = [&](int at) {
          return colors_.level(values[static_cast<size_t>(row) * static_cast<size_t>(columns) +
                                      static_cast<size_t>(at)]);
        };
        const auto here = level(column);
        const int begin = column;
        while (column < columns && level(column) == here) ++column;
        if (!here) continue;
        const double left = x_of(static_cast<double>(begin) / columns);
        paths[*here] += fmt::format("M{:.1f} {:.1f}V{:.1f}H{:.1f}V{:.1f}z", left, low, high,
                                    x_of(static_cast<double>(column) / columns), low);
      }
    }
    for (const auto& [level, path] : paths) panel_.add_path("cell " + level_style(level), path);
  }

  // Labels of several marks are stacked.
  void draw_mark(const Mark& mark, size_t index) {
    const double place = x_.place(mark.x);
    if (!(place >= 0 && place <= 1)) return;
    const double x = x_of(place), y = panel_.top() + 14 + 16 * static_cast<double>(index);
    panel_.add_line("mark", x, panel_.top(), x, panel_.bottom());
    const std::string text = fmt::format("{}: {}", mark.label, tick_label(mark.x));
    const bool fits = width_of(text) < characters_in(panel_.right() - x - 10);
    panel_.add_text(fits ? x + 6 : x - 6, y, fits ? "start" : "end", text, "class=\"mark-label\" ");
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
    panel_.add_path(line_style(index), pen.take());
  }

  // Without labels, points of one color form one path.
  void draw_points(const Points& points, size_t index) {
    std::map<std::string, std::string> paths;
    for (size_t i = 0; i < std::min(points.x.size(), points.y.size()); ++i) {
      const double place = x_.place(points.x[i]), height = y_.place(points.y[i]);
      if (!(place >= 0 && place <= 1) || !std::isfinite(height)) continue;
      const bool is_inside = height >= 0 && height <= 1;
      const auto level = points.values.empty() ? std::nullopt : colors_.level(points.values[i]);
      const std::string style = fmt::format("{} {}", is_inside ? shape_style(points.shape) : "dot",
                                            level ? level_style(*level) : points_style(index));
      const double x = x_of(place), y = y_of(std::clamp(height, 0.0, 1.0));
      const std::string path =
          is_inside ? panel_.mark(points.shape, x, y) : panel_.arrow(height > 1, x, y);
      if (points.labels.empty()) {
        paths[style] += path;
      } else {
        panel_.add_path(style, path, points.labels[i]);
      }
    }
    for (const auto& [style, path] : paths) panel_.add_path(style, path);
  }

  void draw_legend() {
    std::vector<LegendEntry> entries;
    if (plot_.series.size() + plot_.points.size() > 1) {
      for (size_t i = 0; i < plot_.series.size(); ++i) {
        entries.push_back({plot_.series[i].name, line_style(i), /*is_line=*/true});
      }
      for (size_t i = 0; i < plot_.points.size(); ++i) {
        const Points& points = plot_.points[i];
        if (!points.values.empty()) continue;  // The color bar explains them.
        entries.push_back({points.name,
                           fmt::format("{} {}", shape_style(points.shape), points_style(i)),
                           /*is_line=*/false, points.shape});
      }
    }
    panel_.add_legend(entries, colors_, panel_.top() - panel_.size().legend);
  }

  const XyPlot& plot_;
  SvgPanel& panel_;
  AxisTicks x_, y_;
  ColorLevels colors_;
};

}  // namespace

void draw(const XyPlot& plot, SvgPanel& panel) { XyDrawing(plot, panel).draw(); }

}  // namespace gallop::plot

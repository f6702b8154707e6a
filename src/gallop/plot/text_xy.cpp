#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include "gallop/plot/color_levels.h"
#include "gallop/plot/labels.h"
#include "gallop/plot/surface.h"
#include "gallop/plot/text_marks.h"
#include "gallop/plot/ticks.h"

namespace gallop::plot {

namespace {

// U+2800 to U+28FF: one bit per dot, of two columns and four rows.
std::string braille(unsigned dots) {
  const unsigned code = 0x2800 + dots;
  return {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

unsigned braille_dot(int64_t x, int64_t y) {
  static constexpr unsigned kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  return kDots[y % 4][x % 2];
}

class XyText {
 public:
  XyText(const XyPlot& plot, const TextStyle& style)
      : plot_(plot),
        marks_(TextMarks::of(style.unicode)),
        all_columns_(std::max(kFewestColumns, style.columns)),
        rows_(std::max(3, style.rows)),
        y_(y_ticks(plot, rows_ / 3)),
        label_width_(widest_label()),
        columns_(all_columns_ - label_width_ - 3),
        x_(x_ticks(plot, columns_ / 10)),
        dotted_(style.unicode && plot.series.size() == 1),
        cells_(static_cast<size_t>(rows_ * columns_)),
        dots_(cells_.size()) {}

  std::string draw() {
    if (plot_.surface) draw_surface(*plot_.surface);
    draw_marks();
    for (size_t i = plot_.series.size(); i-- > 0;) draw_series(i);
    for (size_t i = plot_.points.size(); i-- > 0;) draw_points(plot_.points[i]);
    std::string text = line_of(plot_.title) + line_of(plot_.y.label);
    for (int row = 0; row < rows_; ++row) text += row_text(row);
    return text + x_axis() + legend();
  }

 private:
  std::string line_of(const std::string& text) const {
    if (text.empty()) return {};
    return shortened(text, static_cast<size_t>(all_columns_), marks_.ellipsis) + "\n";
  }

  int widest_label() const {
    size_t width = 0;
    for (const Tick& tick : y_.ticks()) width = std::max(width, width_of(tick.label));
    return std::min(static_cast<int>(width), std::max(12, all_columns_ / 4));
  }

  // The cell or dot of a position in [0, 1] among `count`.
  static int64_t index_of(double place, int64_t count) {
    return std::llround(place * static_cast<double>(count - 1));
  }
  int row_of(double y_place) const { return static_cast<int>(index_of(1 - y_place, rows_)); }
  int column_of(double x_place) const { return static_cast<int>(index_of(x_place, columns_)); }

  std::string& cell(int64_t row, int64_t column) {
    return cells_[static_cast<size_t>(row * columns_ + column)];
  }

  void draw_surface(const Surface& surface) {
    const auto levels = ColorLevels::of(plot_, static_cast<int>(marks_.shades.size()));
    const auto values = sampled(surface, x_, y_, columns_, rows_);
    for (int row = 0; row < rows_; ++row) {
      for (int column = 0; column < columns_; ++column) {
        const auto level =
            levels.level(values[static_cast<size_t>(row) * static_cast<size_t>(columns_) +
                                static_cast<size_t>(column)]);
        if (level) cell(rows_ - 1 - row, column) = marks_.shades[static_cast<size_t>(*level)];
      }
    }
  }

  void draw_marks() {
    for (const Mark& mark : plot_.marks) {
      const double place = x_.place(mark.x);
      if (!(place >= 0 && place <= 1)) continue;
      for (int row = 0; row < rows_; ++row) cell(row, column_of(place)) = marks_.mark;
    }
  }

  void draw_series(size_t index) {
    const Series& series = plot_.series[index];
    for (size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
      const size_t from = i > 0 ? i - 1 : i;
      draw_line(x_.place(series.x[from]), y_.place(series.y[from]), x_.place(series.x[i]),
                y_.place(series.y[i]), index);
    }
  }

  // In steps of less than a dot; clipped to the bounds.
  void draw_line(double x1, double y1, double x2, double y2, size_t index) {
    if (!std::isfinite(x2 + y2)) return;
    if (!std::isfinite(x1 + y1)) x1 = x2, y1 = y2;
    const int64_t across = dotted_ ? 2 * columns_ : columns_, down = dotted_ ? 4 * rows_ : rows_;
    const double far = std::max(std::abs(x2 - x1) * static_cast<double>(across),
                                std::abs(y2 - y1) * static_cast<double>(down));
    const auto steps = static_cast<int64_t>(std::min(far, 1e5)) + 1;
    for (int64_t i = 0; i <= steps; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(steps);
      const double x = std::lerp(x1, x2, share), y = std::lerp(y1, y2, share);
      if (x < 0 || x > 1 || y < 0 || y > 1) continue;
      set(index_of(x, across), index_of(1 - y, down), index);
    }
  }

  void set(int64_t x, int64_t y, size_t index) {
    if (!dotted_) {
      cell(y, x) = series_mark(index);
      return;
    }
    unsigned& dots = dots_[static_cast<size_t>(y / 4 * columns_ + x / 2)];
    dots |= braille_dot(x, y);
    cell(y / 4, x / 2) = braille(dots);
  }

  const char* series_mark(size_t index) const {
    if (plot_.series[index].weight == Weight::kFaint) return marks_.faint;
    return plot_.points.empty() ? marks_.series[index % marks_.series.size()] : marks_.line;
  }

  const char* shape_mark(const Points& points) const {
    return marks_.shapes[static_cast<size_t>(points.shape)];
  }

  // If there are several points in a cell, the one that stands out most is visible.
  void draw_points(const Points& points) {
    const auto levels = ColorLevels::of(plot_, static_cast<int>(marks_.grades.size()));
    const auto level_of = [&](size_t i) {
      return points.values.empty() ? std::nullopt : levels.level(points.values[i]);
    };
    std::vector<size_t> order(std::min(points.x.size(), points.y.size()));
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return level_of(a) < level_of(b); });
    for (const size_t i : order) {
      const double x = x_.place(points.x[i]), y = y_.place(points.y[i]);
      if (!(x >= 0 && x <= 1) || !std::isfinite(y)) continue;
      const auto level = level_of(i);
      const bool is_inside = y >= 0 && y <= 1;
      cell(row_of(std::clamp(y, 0.0, 1.0)), column_of(x)) =
          !is_inside ? marks_.arrows[y > 1 ? 0 : 1]
          : level    ? marks_.grades[static_cast<size_t>(*level)]
                     : shape_mark(points);
    }
  }

  std::string row_text(int row) {
    const Tick* shown = nullptr;
    for (const Tick& tick : y_.ticks()) {
      if (row_of(y_.place(tick.value)) == row) shown = &tick;
    }
    const auto width = static_cast<size_t>(label_width_);
    const std::string label =
        shown == nullptr ? "" : shortened(shown->label, width, marks_.ellipsis);
    std::string line = std::string(width - width_of(label), ' ') + label + " " +
                       (shown == nullptr ? marks_.side : marks_.side_tick);
    std::string spaces;
    for (int column = 0; column < columns_; ++column) {
      const std::string& character = cell(row, column);
      if (character.empty()) {
        spaces += ' ';
      } else {
        line += spaces + character;
        spaces.clear();
      }
    }
    return line + "\n";
  }

  // The line below the drawing, its labels and the axis title.
  std::string x_axis() const {
    const auto columns = static_cast<size_t>(columns_);
    const size_t room =
        x_.categories() == 0 ? columns : std::max<size_t>(3, columns / x_.categories() - 1);
    std::vector<std::string> line(columns, marks_.bottom);
    std::string labels;
    size_t free = 0;  // First free column.
    for (const Tick& tick : x_.ticks()) {
      const auto at = static_cast<size_t>(column_of(x_.place(tick.value)));
      line[at] = marks_.bottom_tick;
      const std::string label = shortened(tick.label, room, marks_.ellipsis);
      const size_t half = width_of(label) / 2;
      const size_t begin = std::min(at > half ? at - half : 0, columns + 1 - width_of(label));
      if (begin < free) continue;
      labels = padded(labels, begin);
      labels += label;
      free = begin + width_of(label) + 1;
    }
    const std::string margin(static_cast<size_t>(label_width_) + 1, ' ');
    std::string text = margin + marks_.corner;
    for (const std::string& character : line) text += character;
    text += "\n" + margin + " " + labels + "\n";
    if (plot_.x.label.empty()) return text;
    const std::string label = shortened(plot_.x.label, columns, marks_.ellipsis);
    return text + margin + " " + std::string((columns - width_of(label)) / 2, ' ') + label + "\n";
  }

  std::string legend() const {
    std::vector<std::string> items;
    if (plot_.series.size() + plot_.points.size() > 1) {
      for (size_t i = 0; i < plot_.series.size(); ++i) {
        items.push_back(
            fmt::format("{} {}", dotted_ ? marks_.line : series_mark(i), plot_.series[i].name));
      }
      for (const Points& points : plot_.points) {
        if (!points.values.empty()) continue;  // The color scale explains them.
        items.push_back(fmt::format("{} {}", shape_mark(points), points.name));
      }
    }
    std::string text = wrapped(items, static_cast<size_t>(all_columns_));
    for (const Mark& mark : plot_.marks) {
      text += fmt::format("{} {}: {}\n", marks_.mark, tick_label(mark.x), mark.label);
    }
    const auto& grades = plot_.surface ? marks_.shades : marks_.grades;
    const auto levels = ColorLevels::of(plot_, static_cast<int>(grades.size()));
    if (!levels.is_used()) return text;
    return text + wrapped(grade_items(grades, levels), static_cast<size_t>(all_columns_));
  }

  const XyPlot& plot_;
  const TextMarks& marks_;
  int all_columns_;
  int rows_;
  AxisTicks y_;
  int label_width_;
  int columns_;
  AxisTicks x_;
  bool dotted_;
  std::vector<std::string> cells_;  // Row-major; empty where nothing is drawn.
  std::vector<unsigned> dots_;
};

}  // namespace

std::string to_text(const XyPlot& plot, const TextStyle& style) {
  return XyText(plot, style).draw();
}

}  // namespace gallop::plot

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "gallop/plot/ticks.h"

namespace gallop::plot {

namespace {

constexpr int kFewestColumns = 30;
constexpr std::array<const char*, 4> kAsciiMarkers = {"*", "o", "+", "x"};
constexpr std::array<const char*, 4> kMarkers = {"●", "○", "◆", "×"};

// What each character of a box is in either alphabet.
struct Frame {
  const char* side;
  const char* side_tick;
  const char* corner;
  const char* bottom;
  const char* bottom_tick;
  const char* mark;
};
constexpr Frame kFrame = {"│", "┤", "└", "─", "┬", "┊"};
constexpr Frame kAsciiFrame = {"|", "+", "+", "-", "+", ":"};

// U+2800 to U+28FF: one bit a dot, of two columns and four rows.
std::string braille(unsigned dots) {
  const unsigned code = 0x2800 + dots;
  return {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

unsigned braille_dot(int64_t x, int64_t y) {
  static constexpr unsigned kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  return kDots[y % 4][x % 2];
}

class TextPlot {
 public:
  TextPlot(const LinePlot& plot, const TextStyle& style)
      : plot_(plot),
        unicode_(style.unicode),
        rows_(std::max(3, style.rows)),
        y_(y_ticks(plot, rows_ / 3)),
        label_width_(widest_label()),
        columns_(std::max(kFewestColumns, style.columns) - label_width_ - 3),
        x_(x_ticks(plot, columns_ / 10)),
        frame_(unicode_ ? kFrame : kAsciiFrame),
        dotted_(unicode_ && plot.series.size() == 1),
        cells_(static_cast<size_t>(rows_ * columns_)),
        dots_(cells_.size()) {}

  std::string draw() {
    draw_marks();
    for (size_t i = 0; i < plot_.series.size(); ++i) draw_series(i);
    std::string text = plot_.title.empty() ? "" : plot_.title + "\n";
    if (!plot_.y.label.empty()) text += plot_.y.label + "\n";
    for (int row = 0; row < rows_; ++row) text += row_text(row);
    return text + x_axis() + legend();
  }

 private:
  int widest_label() const {
    size_t width = 0;
    for (const Tick& tick : y_.ticks()) width = std::max(width, tick.label.size());
    return static_cast<int>(width);
  }

  // The cell or dot of a place in [0, 1] among `count`.
  static int64_t index_of(double place, int64_t count) {
    return std::llround(place * static_cast<double>(count - 1));
  }
  int row_of(double y_place) const { return static_cast<int>(index_of(1 - y_place, rows_)); }
  int column_of(double x_place) const { return static_cast<int>(index_of(x_place, columns_)); }

  std::string& cell(int64_t row, int64_t column) {
    return cells_[static_cast<size_t>(row * columns_ + column)];
  }

  void draw_marks() {
    for (const Mark& mark : plot_.marks) {
      const double place = x_.place(mark.x);
      if (!(place >= 0 && place <= 1)) continue;
      for (int row = 0; row < rows_; ++row) cell(row, column_of(place)) = frame_.mark;
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

  // In steps of less than a dot. A point beyond the bounds is drawn as far as they go.
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
      cell(y, x) = (unicode_ ? kMarkers : kAsciiMarkers)[index % kMarkers.size()];
      return;
    }
    unsigned& dots = dots_[static_cast<size_t>(y / 4 * columns_ + x / 2)];
    dots |= braille_dot(x, y);
    cell(y / 4, x / 2) = braille(dots);
  }

  std::string row_text(int row) {
    std::string label;
    for (const Tick& tick : y_.ticks()) {
      if (row_of(y_.place(tick.value)) == row) label = tick.label;
    }
    std::string line = fmt::format("{:>{}} {}", label, label_width_,
                                   label.empty() ? frame_.side : frame_.side_tick);
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

  // The line below the drawing, its labels and what it is about.
  std::string x_axis() const {
    const auto columns = static_cast<size_t>(columns_);
    std::vector<std::string> line(columns, frame_.bottom);
    std::string labels(columns + 1, ' ');
    size_t free = 0;  // From here on nothing is written.
    for (const Tick& tick : x_.ticks()) {
      const auto at = static_cast<size_t>(column_of(x_.place(tick.value)));
      line[at] = frame_.bottom_tick;
      const size_t half = tick.label.size() / 2;
      const size_t begin = std::min(at > half ? at - half : 0, columns + 1 - tick.label.size());
      if (begin < free) continue;
      labels.replace(begin, tick.label.size(), tick.label);
      free = begin + tick.label.size() + 1;
    }
    const std::string margin(static_cast<size_t>(label_width_) + 1, ' ');
    std::string text = margin + frame_.corner;
    for (const std::string& character : line) text += character;
    text += "\n" + margin + " " + labels.substr(0, labels.find_last_not_of(' ') + 1) + "\n";
    if (plot_.x.label.empty()) return text;
    const size_t before = columns > plot_.x.label.size() ? (columns - plot_.x.label.size()) / 2 : 0;
    return text + margin + " " + std::string(before, ' ') + plot_.x.label + "\n";
  }

  std::string legend() const {
    std::string text;
    for (size_t i = 0; plot_.series.size() > 1 && i < plot_.series.size(); ++i) {
      text += fmt::format("{} {}\n", (unicode_ ? kMarkers : kAsciiMarkers)[i % kMarkers.size()],
                          plot_.series[i].name);
    }
    for (const Mark& mark : plot_.marks) {
      text += fmt::format("{} {}: {}\n", frame_.mark, tick_label(mark.x), mark.label);
    }
    return text;
  }

  const LinePlot& plot_;
  bool unicode_;
  int rows_;
  AxisTicks y_;
  int label_width_;
  int columns_;
  AxisTicks x_;
  Frame frame_;
  bool dotted_;
  std::vector<std::string> cells_;  // Of the drawing, row by row; empty where nothing is.
  std::vector<unsigned> dots_;
};

}  // namespace

std::string to_text(const LinePlot& plot, const TextStyle& style) {
  return TextPlot(plot, style).draw();
}

}  // namespace gallop::plot

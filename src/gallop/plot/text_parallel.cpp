#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include "gallop/plot/color_levels.h"
#include "gallop/plot/labels.h"
#include "gallop/plot/text_marks.h"
#include "gallop/plot/ticks.h"

namespace gallop::plot {

namespace {

constexpr size_t kAxisColumns = 13;  // Minimum distance of axes.

class ParallelText {
 public:
  ParallelText(const ParallelPlot& plot, const TextStyle& style)
      : plot_(plot),
        marks_(TextMarks::of(style.unicode)),
        columns_(static_cast<size_t>(std::max(kFewestColumns, style.columns))),
        rows_(static_cast<size_t>(std::max(3, style.rows))),
        order_(plot.rows.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return prominence(a) < prominence(b); });
    best_ = std::min(plot.rows.size(), std::max<size_t>(3, plot.rows.size() / 10));
  }

  std::string draw() {
    std::string text;
    if (!plot_.title.empty()) text = shortened(plot_.title, columns_, marks_.ellipsis) + "\n";
    const size_t most = std::max<size_t>(2, columns_ / kAxisColumns), all = plot_.axes.size();
    // Distributed evenly over blocks, each of which starts with the first axis.
    const size_t blocks = all <= most ? 1 : (all - 1 + most - 2) / (most - 1);
    const size_t each = blocks == 1 ? all : (all - 1 + blocks - 1) / blocks;
    for (size_t begin = blocks == 1 ? 0 : 1; begin < all; begin += each) {
      std::vector<size_t> axes;
      if (blocks > 1) axes.push_back(0);
      for (size_t i = begin; i < std::min(all, begin + each); ++i) axes.push_back(i);
      text += block(axes);
    }
    std::vector<std::string> legend = {
        fmt::format("{} the {} of {} with {} {}", marks_.series[0], best_, plot_.rows.size(),
                    plot_.color.low_stands_out ? "the least" : "the most", plot_.color.label)};
    if (best_ < plot_.rows.size()) legend.push_back(fmt::format("{} others", marks_.faint));
    return text + wrapped(legend, columns_);
  }

 private:
  double prominence(size_t row) const {
    return plot_.color.low_stands_out ? -plot_.values[row] : plot_.values[row];
  }

  std::string& cell(size_t row, size_t column) { return cells_[row * columns_ + column]; }

  bool lacks(size_t axis) const {
    return std::any_of(plot_.rows.begin(), plot_.rows.end(),
                       [axis](const auto& row) { return std::isnan(row[axis]); });
  }

  // Axes side by side, with a row below them for missing values.
  std::string block(const std::vector<size_t>& axes) {
    const size_t spacing = columns_ / axes.size();
    const bool has_none = std::any_of(axes.begin(), axes.end(), [&](size_t i) { return lacks(i); });
    const size_t rows = rows_ + (has_none ? 2 : 0);
    cells_.assign(rows * columns_, " ");
    std::vector<AxisTicks> ticks;
    for (const size_t axis : axes) ticks.push_back(axis_ticks(plot_, axis, 4));
    for (size_t i = 0; i < order_.size(); ++i) {
      const bool is_best = i + best_ >= order_.size();
      draw_row(plot_.rows[order_[i]], axes, ticks, spacing,
               is_best ? marks_.series[0] : marks_.faint);
    }
    std::string names;
    for (size_t i = 0; i < axes.size(); ++i) {
      names = padded(names, i * spacing) +
              shortened(plot_.axes[axes[i]].label, spacing - 1, marks_.ellipsis);
      draw_axis(ticks[i], i * spacing, spacing);
      if (lacks(axes[i])) write(rows - 1, i * spacing, "none");
    }
    std::string text = names + "\n";
    for (size_t row = 0; row < rows; ++row) {
      std::string line;
      for (size_t column = 0; column < columns_; ++column) line += cell(row, column);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

  size_t row_of(const AxisTicks& ticks, double value) const {
    if (std::isnan(value)) return rows_ + 1;
    const double place = ticks.place(value);
    const double share = std::isnan(place) ? 0 : std::clamp(place, 0.0, 1.0);
    return static_cast<size_t>(std::lround((1 - share) * static_cast<double>(rows_ - 1)));
  }

  void draw_row(const std::vector<double>& row, const std::vector<size_t>& axes,
                const std::vector<AxisTicks>& ticks, size_t spacing, const char* mark) {
    for (size_t i = 0; i + 1 < axes.size(); ++i) {
      const auto from = static_cast<double>(row_of(ticks[i], row[axes[i]]));
      const auto to = static_cast<double>(row_of(ticks[i + 1], row[axes[i + 1]]));
      const size_t steps = 4 * std::max(spacing, rows_);
      for (size_t step = 0; step <= steps; ++step) {
        const double share = static_cast<double>(step) / static_cast<double>(steps);
        cell(static_cast<size_t>(std::lround(std::lerp(from, to, share))),
             i * spacing + static_cast<size_t>(std::lround(share * static_cast<double>(spacing)))) =
            mark;
      }
    }
  }

  void draw_axis(const AxisTicks& ticks, size_t column, size_t spacing) {
    for (size_t row = 0; row < rows_; ++row) cell(row, column) = marks_.side;
    if (ticks.categories() == 0) {
      write(0, column + 1, short_label(ticks.high()));
      write(rows_ - 1, column + 1, short_label(ticks.low()));
      return;
    }
    for (const Tick& tick : ticks.ticks()) {
      write(row_of(ticks, tick.value), column + 1,
            shortened(tick.label, spacing / 2, marks_.ellipsis));
    }
  }

  // Overwrites existing characters, with a space on both sides.
  void write(size_t row, size_t column, const std::string& text) {
    std::string character;
    size_t at = column;
    for (size_t i = 0; i < text.size(); ++i) {
      character += text[i];
      const bool ends = i + 1 == text.size() || width_of(text.substr(i + 1, 1)) == 1;
      if (!ends || at >= columns_) continue;
      cell(row, at++) = character;
      character.clear();
    }
    if (at < columns_) cell(row, at) = " ";
  }

  const ParallelPlot& plot_;
  const TextMarks& marks_;
  size_t columns_, rows_;
  std::vector<size_t> order_;  // Order of rows; those that stand out are last.
  size_t best_ = 0;            // Number of rows that stand out.
  std::vector<std::string> cells_;
};

}  // namespace

std::string to_text(const ParallelPlot& plot, const TextStyle& style) {
  return ParallelText(plot, style).draw();
}

std::string to_text(const Plot& plot, const TextStyle& style) {
  return std::visit([&style](const auto& one) { return to_text(one, style); }, plot);
}

}  // namespace gallop::plot

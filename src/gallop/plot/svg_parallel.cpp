#include <algorithm>
#include <cmath>
#include <numeric>

#include "gallop/plot/labels.h"
#include "gallop/plot/svg_panel.h"
#include "gallop/plot/ticks.h"

namespace gallop::plot {

namespace {

class ParallelDrawing {
 public:
  ParallelDrawing(const ParallelPlot& plot, SvgPanel& panel)
      : plot_(plot), panel_(panel), colors_(ColorLevels::of(plot, kColorLevels)) {
    for (size_t i = 0; i < plot.axes.size(); ++i) {
      axes_.push_back(axis_ticks(plot, i, panel.size().y_ticks));
    }
    spacing_ = (panel.right() - panel.left()) /
               static_cast<double>(std::max<size_t>(2, plot.axes.size()) - 1);
  }

  void draw() {
    panel_.add_title(plot_.title);
    for (const size_t row : order()) draw_row(row);
    const bool staggers = std::any_of(plot_.axes.begin(), plot_.axes.end(), [&](const Axis& axis) {
      return width_of(axis.label) > characters_in(spacing_ - 8);
    });
    for (size_t i = 0; i < axes_.size(); ++i) draw_axis(i, staggers);
    panel_.add_legend({}, colors_, panel_.top() - panel_.size().top + 20);
  }

 private:
  double x_of(size_t axis) const { return panel_.left() + spacing_ * static_cast<double>(axis); }

  double y_of(size_t axis, double value) const {
    if (std::isnan(value)) return panel_.bottom() + 24;
    const double place = axes_[axis].place(value);
    return panel_.y_of(std::isnan(place) ? 0 : std::clamp(place, 0.0, 1.0));
  }

  // The drawing order; lines that stand out come last.
  std::vector<size_t> order() const {
    std::vector<size_t> rows(plot_.rows.size());
    std::iota(rows.begin(), rows.end(), size_t{0});
    const auto level = [&](size_t row) { return colors_.level(plot_.values[row]).value_or(0); };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](size_t a, size_t b) { return level(a) < level(b); });
    return rows;
  }

  void draw_row(size_t row) {
    std::string path;
    for (size_t i = 0; i < axes_.size(); ++i) {
      path +=
          fmt::format("{}{:.1f} {:.1f}", i == 0 ? 'M' : 'L', x_of(i), y_of(i, plot_.rows[row][i]));
    }
    panel_.add_path("row " + level_style(colors_.level(plot_.values[row]).value_or(0)), path,
                    plot_.labels.empty() ? std::string_view() : plot_.labels[row]);
  }

  void draw_axis(size_t i, bool staggers) {
    const double x = x_of(i);
    panel_.add_line("frame", x, panel_.top(), x, panel_.bottom());
    const size_t room = characters_in((staggers ? 2 : 1) * spacing_ - 8);
    panel_.add_text(x, panel_.top() - (staggers && i % 2 == 0 ? 28 : 12), "middle",
                    shortened(plot_.axes[i].label, room, "…"), "class=\"name\" ");
    const char* const style = "class=\"mark-label\" ";
    for (const Tick& tick : axes_[i].ticks()) {
      const double y = y_of(i, tick.value);
      panel_.add_line("frame", x - 4, y, x, y);
      panel_.add_text(x - 7, y + 4, "end", shortened(tick.label, characters_in(spacing_ / 2), "…"),
                      style);
    }
    const bool lacks = std::any_of(plot_.rows.begin(), plot_.rows.end(),
                                   [&](const auto& row) { return std::isnan(row[i]); });
    if (lacks) panel_.add_text(x - 7, panel_.bottom() + 28, "end", "none", style);
  }

  const ParallelPlot& plot_;
  SvgPanel& panel_;
  ColorLevels colors_;
  std::vector<AxisTicks> axes_;
  double spacing_ = 0;
};

}  // namespace

void draw(const ParallelPlot& plot, SvgPanel& panel) { ParallelDrawing(plot, panel).draw(); }

}  // namespace gallop::plot

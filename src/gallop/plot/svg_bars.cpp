#include <algorithm>

#include "gallop/plot/labels.h"
#include "gallop/plot/svg_panel.h"

namespace gallop::plot {

namespace {

constexpr double kLeast = 15, kMost = 28;  // Height of a bar including spacing.
constexpr double kBelow = 20;              // Height of axis labels, which bar plots lack.

}  // namespace

double height_of_bars(const BarPlot& plot, const PanelSize& size) {
  return size.top - size.legend + kMost * static_cast<double>(plot.bars.size()) - kBelow +
         size.bottom;
}

void draw(const BarPlot& plot, SvgPanel& panel) {
  panel.add_title(plot.title);
  const double edge = panel.left() - panel.size().left;
  const double top = panel.top() - panel.size().legend, height = panel.bottom() + kBelow - top;
  const auto room = static_cast<size_t>(height / kLeast);
  const bool fits = plot.bars.size() <= room;
  const size_t shown = fits ? plot.bars.size() : room - 1;
  size_t widest = 0, widest_text = 0;
  double longest = 0;
  for (const Bar& bar : plot.bars) {
    widest = std::max(widest, width_of(bar.label));
    widest_text = std::max(widest_text, width_of(bar.text));
    longest = std::max(longest, bar.value);
  }
  const size_t letters = std::min(widest, characters_in(0.4 * panel.size().width));
  const double left = edge + 16 + 6.6 * static_cast<double>(letters);
  const double right = panel.right() - std::max(56.0, 10 + 6.6 * static_cast<double>(widest_text));
  const double step =
      std::min(kMost, height / static_cast<double>(std::max<size_t>(1, shown + (fits ? 0 : 1))));
  for (size_t i = 0; i < shown; ++i) {
    const Bar& bar = plot.bars[i];
    const double y = top + step * static_cast<double>(i);
    const double scale = longest > 0 ? (right - left) / longest : 0;
    const double begin = left + scale * bar.begin;
    const double width = scale * (bar.value - bar.begin);
    panel.add_text(left - 8, y + step / 2 + 4, "end", shortened(bar.label, letters, "…"));
    panel.add(
        "<rect class=\"bar a\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
        begin, y + 0.15 * step, width, 0.7 * step);
    panel.add_text(begin + width + 6, y + step / 2 + 4, "start", bar.text);
  }
  if (!fits) {
    panel.add_text(left - 8, top + step * (static_cast<double>(shown) + 0.5) + 4, "end",
                   fmt::format("and {} more", plot.bars.size() - shown));
  }
  panel.add_line("frame", left, top, left, top + step * static_cast<double>(shown));
}

}  // namespace gallop::plot

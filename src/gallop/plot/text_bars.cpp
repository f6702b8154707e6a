#include <algorithm>
#include <cmath>

#include "gallop/plot/labels.h"
#include "gallop/plot/text_marks.h"

namespace gallop::plot {

std::string to_text(const BarPlot& plot, const TextStyle& style) {
  const TextMarks& marks = TextMarks::of(style.unicode);
  const auto columns = static_cast<size_t>(std::max(kFewestColumns, style.columns));
  size_t label_width = 0, text_width = 0;
  double longest = 0;
  for (const Bar& bar : plot.bars) {
    label_width = std::max(label_width, width_of(bar.label));
    text_width = std::max(text_width, width_of(bar.text));
    longest = std::max(longest, bar.value);
  }
  label_width = std::min(label_width, columns / 2);
  const double room =
      static_cast<double>(columns) - static_cast<double>(label_width + text_width + 4);
  std::string text;
  if (!plot.title.empty()) text = shortened(plot.title, columns, marks.ellipsis) + "\n";
  for (const Bar& bar : plot.bars) {
    text += padded(shortened(bar.label, label_width, marks.ellipsis), label_width) + "  " +
            std::string(text_width - width_of(bar.text), ' ') + bar.text;
    const double scale = longest > 0 ? std::max(0.0, room) / longest : 0;
    const auto begin = std::lround(scale * bar.begin), end = std::lround(scale * bar.value);
    if (end > begin) text += "  " + std::string(static_cast<size_t>(begin), ' ');
    for (long i = begin; i < end; ++i) text += marks.bar;
    text += "\n";
  }
  return text;
}

}  // namespace gallop::plot

#include "gallop/plot/text_marks.h"

#include <fmt/format.h>

#include "gallop/plot/labels.h"

namespace gallop::plot {

const TextMarks& TextMarks::of(bool unicode) {
  static const TextMarks kUnicode = {
      .side = "│",
      .side_tick = "┤",
      .corner = "└",
      .bottom = "─",
      .bottom_tick = "┬",
      .mark = "┊",
      .series = {"●", "○", "◆", "×"},
      .faint = "·",
      .line = "⠒",
      .shapes = {"●", "○", "×"},
      .arrows = {"▲", "▼"},
      .grades = {"·", "○", "●"},
      .shades = {"░", "▒", "▓", "█"},
      .bar = "█",
      .ellipsis = "…",
  };
  static const TextMarks kAscii = {
      .side = "|",
      .side_tick = "+",
      .corner = "+",
      .bottom = "-",
      .bottom_tick = "+",
      .mark = ":",
      .series = {"*", "o", "+", "x"},
      .faint = ".",
      .line = "-",
      .shapes = {"o", "u", "x"},
      .arrows = {"^", "v"},
      .grades = {".", "o", "@"},
      .shades = {".", "-", "+", "#"},
      .bar = "#",
      .ellipsis = "~",
  };
  return unicode ? kUnicode : kAscii;
}

std::vector<std::string> grade_items(const std::vector<const char*>& marks,
                                     const ColorLevels& levels) {
  std::vector<std::string> items;
  for (int i = 0; i < levels.count(); ++i) {
    const char* const mark = marks[static_cast<size_t>(i)];
    const std::string end = levels.edge_label(i + 1);
    items.push_back(
        i == 0 ? fmt::format("{}: {} {} to {}", levels.label(), mark, levels.edge_label(0), end)
               : fmt::format("{} to {}", mark, end));
  }
  return items;
}

std::string wrapped(const std::vector<std::string>& items, size_t columns) {
  constexpr size_t kGap = 3;
  std::string text, line;
  for (const std::string& item : items) {
    if (!line.empty() && width_of(line) + kGap + width_of(item) > columns) {
      text += line + "\n";
      line.clear();
    }
    line += line.empty() ? item : std::string(kGap, ' ') + item;
  }
  return line.empty() ? text : text + line + "\n";
}

}  // namespace gallop::plot

#include <algorithm>

#include <fmt/format.h>

#include "gallop/plot/labels.h"
#include "gallop/plot/text_marks.h"

namespace gallop::plot {

namespace {

constexpr size_t kWidestCell = 9;  // Leaves room for a short column label.

class HeatText {
 public:
  HeatText(const HeatMap& plot, const TextStyle& style)
      : plot_(plot),
        marks_(TextMarks::of(style.unicode)),
        columns_(static_cast<size_t>(std::max(kFewestColumns, style.columns))),
        levels_(ColorLevels::of(plot, static_cast<int>(marks_.shades.size()))) {
    for (const std::string& name : plot.rows) label_width_ = std::max(label_width_, width_of(name));
    label_width_ = std::min(label_width_, columns_ / 3);
    size_t widest = 1;
    for (const std::string& text : plot.texts) widest = std::max(widest, width_of(text));
    const size_t room = columns_ - label_width_ - 1, all = plot.columns.size();
    has_texts_ = !plot.texts.empty() && all * (widest + 1) <= room;
    cell_width_ = has_texts_ ? widest + 1 : 1;
    // Column labels get the remaining space, up to a few characters.
    if (has_texts_) {
      cell_width_ = std::max(cell_width_, std::min(room / std::max<size_t>(1, all), kWidestCell));
    }
    shown_ = std::min(all, room / cell_width_);
  }

  std::string draw() const {
    std::string text = line_of(plot_.title);
    text += line_of(fmt::format("rows: {}, columns: {}", plot_.row_label, plot_.column_label));
    if (has_texts_) text += heading();
    for (size_t row = 0; row < plot_.rows.size(); ++row) text += row_text(row);
    if (shown_ < plot_.columns.size()) {
      text += line_of(fmt::format("and {} more columns", plot_.columns.size() - shown_));
    }
    if (has_texts_ || !levels_.is_used()) return text;
    return text + wrapped(grade_items(marks_.shades, levels_), columns_);
  }

 private:
  std::string line_of(const std::string& text) const {
    if (text.empty()) return {};
    return shortened(text, columns_, marks_.ellipsis) + "\n";
  }

  std::string right_aligned(const std::string& text) const {
    return std::string(cell_width_ - std::min(cell_width_, width_of(text)), ' ') + text;
  }

  std::string heading() const {
    std::string line(label_width_, ' ');
    for (const std::string& name : plot_.columns) {
      line += right_aligned(shortened(name, cell_width_ - 1, marks_.ellipsis));
    }
    return line + "\n";
  }

  std::string row_text(size_t row) const {
    std::string line =
        padded(shortened(plot_.rows[row], label_width_, marks_.ellipsis), label_width_);
    if (!has_texts_) line += ' ';
    for (size_t column = 0; column < shown_; ++column) {
      const size_t at = row * plot_.columns.size() + column;
      const auto level = levels_.level(plot_.values[at]);
      if (has_texts_) {
        line += right_aligned(level ? plot_.texts[at] : "");
      } else {
        line += level ? marks_.shades[static_cast<size_t>(*level)] : " ";
      }
    }
    line.resize(line.find_last_not_of(' ') + 1);
    return line + "\n";
  }

  const HeatMap& plot_;
  const TextMarks& marks_;
  size_t columns_;
  ColorLevels levels_;
  size_t label_width_ = 0;
  bool has_texts_ = false;
  size_t cell_width_ = 1;
  size_t shown_ = 0;
};

}  // namespace

std::string to_text(const HeatMap& plot, const TextStyle& style) {
  return HeatText(plot, style).draw();
}

}  // namespace gallop::plot

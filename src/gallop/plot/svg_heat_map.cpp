#include <algorithm>

#include "gallop/base/text.h"
#include "gallop/plot/labels.h"
#include "gallop/plot/svg_panel.h"

namespace gallop::plot {

namespace {

constexpr double kCharacter = 6.6;
constexpr double kMostCell = 44, kMostCellHeight = 30, kMostHeight = 720;
constexpr double kLeastTextCell = 24;  // Minimum height of a cell with text.
constexpr double kLeastLabelled = 9;   // Minimum spacing of row and column labels.
constexpr size_t kMostLetters = 18;

// In pixels.
struct Layout {
  Layout(const HeatMap& plot, const PanelSize& size) {
    for (const std::string& name : plot.rows) row_letters = std::max(row_letters, width_of(name));
    for (const std::string& name : plot.columns) {
      column_letters = std::max(column_letters, width_of(name));
    }
    row_letters = std::min(row_letters, kMostLetters);
    column_letters = std::min(column_letters, kMostLetters);
    left = 34 + kCharacter * static_cast<double>(row_letters);
    const auto rows = static_cast<double>(std::max<size_t>(1, plot.rows.size()));
    const auto columns = static_cast<double>(std::max<size_t>(1, plot.columns.size()));
    width = std::min(kMostCell, (size.width - left - size.right) / columns);
    height = std::min({width, kMostCellHeight, kMostHeight / rows});
    const bool fits = kCharacter * static_cast<double>(column_letters) < width - 4;
    turned = !fits;
    below = turned ? 14 + kCharacter * static_cast<double>(column_letters) : 22;
  }

  size_t row_letters = 1, column_letters = 1;
  double left = 0;               // Left edge of the cells.
  double width = 0, height = 0;  // Size of a cell.
  bool turned = false;           // Column labels are vertical.
  double below = 0;              // Height of column labels.
};

class HeatDrawing {
 public:
  HeatDrawing(const HeatMap& plot, SvgPanel& panel)
      : plot_(plot),
        panel_(panel),
        colors_(ColorLevels::of(plot, kColorLevels)),
        layout_(plot, panel.size()),
        left_(panel.left() - panel.size().left + layout_.left),
        top_(panel.top()),
        right_(left_ + layout_.width * static_cast<double>(plot.columns.size())),
        bottom_(top_ + layout_.height * static_cast<double>(plot.rows.size())) {}

  void draw() {
    panel_.add_title(plot_.title);
    panel_.add_legend({}, colors_, top_ - panel_.size().legend);
    draw_names();
    for (size_t row = 0; row < plot_.rows.size(); ++row) {
      for (size_t column = 0; column < plot_.columns.size(); ++column) draw_cell(row, column);
    }
    panel_.add_line("frame", left_, top_, left_, bottom_);
    panel_.add_line("frame", left_, bottom_, right_, bottom_);
  }

 private:
  double x_of(size_t column) const { return left_ + layout_.width * static_cast<double>(column); }
  double y_of(size_t row) const { return top_ + layout_.height * static_cast<double>(row); }

  void add_turned(double x, double y, const char* anchor, std::string_view text) {
    panel_.add(
        "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" text-anchor=\"{}\">{}</text>\n",
        x, y, anchor, xml_text(text));
  }

  void draw_names() {
    const size_t row_letters = layout_.row_letters, column_letters = layout_.column_letters;
    for (size_t i = 0; i < plot_.rows.size() && layout_.height >= kLeastLabelled; ++i) {
      panel_.add_text(left_ - 6, y_of(i) + layout_.height / 2 + 4, "end",
                      shortened(plot_.rows[i], row_letters, "…"));
    }
    for (size_t i = 0; i < plot_.columns.size() && layout_.width >= kLeastLabelled; ++i) {
      const std::string name = shortened(plot_.columns[i], column_letters, "…");
      const double x = x_of(i) + layout_.width / 2;
      if (layout_.turned) {
        add_turned(x + 4, bottom_ + 6, "end", name);
      } else {
        panel_.add_text(x, bottom_ + 17, "middle", name);
      }
    }
    add_turned(panel_.left() - panel_.size().left + 16, (top_ + bottom_) / 2, "middle",
               plot_.row_label);
    panel_.add_text((left_ + right_) / 2, bottom_ + layout_.below + 14, "middle",
                    plot_.column_label);
  }

  void draw_cell(size_t row, size_t column) {
    const size_t at = row * plot_.columns.size() + column;
    const auto level = colors_.level(plot_.values[at]);
    if (!level) return;
    const double x = x_of(column), y = y_of(row);
    panel_.add(
        "<rect class=\"cell {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"",
        level_style(*level), x, y, layout_.width, layout_.height);
    if (plot_.labels.empty()) {
      panel_.add("/>\n");
    } else {
      panel_.add("><title>{}</title></rect>\n", xml_text(plot_.labels[at]));
    }
    if (plot_.texts.empty() || layout_.width < kLeastTextCell) return;
    const std::string& text = plot_.texts[at];
    if (kCharacter * static_cast<double>(width_of(text)) > layout_.width - 2) return;
    panel_.add_text(x + layout_.width / 2, y + layout_.height / 2 + 4, "middle", text,
                    *level < kColorLevels / 2 ? "class=\"on-low\" pointer-events=\"none\" "
                                              : "class=\"on-high\" pointer-events=\"none\" ");
  }

  const HeatMap& plot_;
  SvgPanel& panel_;
  ColorLevels colors_;
  Layout layout_;
  double left_, top_, right_, bottom_;
};

}  // namespace

double height_of_heat_map(const HeatMap& plot, const PanelSize& size) {
  const Layout layout(plot, size);
  return size.top + layout.height * static_cast<double>(plot.rows.size()) + layout.below + 26;
}

void draw(const HeatMap& plot, SvgPanel& panel) { HeatDrawing(plot, panel).draw(); }

}  // namespace gallop::plot

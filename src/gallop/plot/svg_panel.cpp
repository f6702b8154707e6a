#include "gallop/plot/svg_panel.h"

#include <array>
#include <cmath>

#include "gallop/base/text.h"
#include "gallop/plot/labels.h"
#include "gallop/plot/ticks.h"

namespace gallop::plot {

namespace {

constexpr double kEdge = 8;         // Margin between a panel's edges and its title.
constexpr double kCharacter = 6.4;  // Approximate width of a character.

// Distinguishable with color vision deficiencies.
constexpr std::array<const char*, 4> kTones = {"a", "b", "c", "d"};

}  // namespace

SvgPanel::SvgPanel(const PanelSize& size, double x, double y, std::string& out)
    : size_(size),
      left_(x + size.left),
      right_(x + size.width - size.right),
      top_(y + size.top),
      bottom_(y + size.height - size.bottom),
      out_(out) {}

double SvgPanel::x_of(double place) const { return std::lerp(left_, right_, place); }
double SvgPanel::y_of(double place) const { return std::lerp(bottom_, top_, place); }

void SvgPanel::add_text(double x, double y, const char* anchor, std::string_view text,
                        const char* attributes) {
  add("<text {}x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", attributes, x, y, anchor,
      xml_text(text));
}

void SvgPanel::add_line(const char* style, double x1, double y1, double x2, double y2) {
  add("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style, x1,
      y1, x2, y2);
}

void SvgPanel::add_path(std::string_view style, std::string_view path, std::string_view label) {
  if (path.empty()) return;
  add("<path class=\"{}\" d=\"{}\"", style, path);
  if (label.empty()) {
    add("/>\n");
  } else {
    add("><title>{}</title></path>\n", xml_text(label));
  }
}

void SvgPanel::add_title(std::string_view title) {
  constexpr double kRoom = 0.85;  // For a title, whose characters are wider.
  add_text(left_ - size_.left + kEdge, top_ - size_.top + 20, "start",
           shortened(title, characters_in(kRoom * (size_.width - 2 * kEdge)), "…"),
           "class=\"title\" ");
}

void SvgPanel::add_legend(const std::vector<LegendEntry>& entries, const ColorLevels& colors,
                          double y) {
  double x = colors.is_used() ? add_color_bar(colors, y) : right_;
  for (size_t i = entries.size(); i-- > 0;) {
    const LegendEntry& entry = entries[i];
    add_text(x, y, "end", entry.name);
    x -= kCharacter * static_cast<double>(width_of(entry.name)) + 8;
    if (entry.is_line) {
      add_path(entry.style, fmt::format("M{:.1f} {:.1f}h-16", x, y - 4));
    } else {
      add_path(entry.style, mark(entry.shape, x - 6, y - 4));
    }
    x -= entry.is_line ? 30 : 24;
  }
}

// Draws label, lower bound, color steps and upper bound. Returns the left edge.
double SvgPanel::add_color_bar(const ColorLevels& colors, double y) {
  constexpr double kStep = 7;
  const bool rises = colors.edge(0) <= colors.edge(colors.count());
  const int low = rises ? 0 : colors.count();
  const std::string low_end = colors.edge_label(low),
                    high_end = colors.edge_label(colors.count() - low);
  const double x =
      right_ - kCharacter * static_cast<double>(high_end.size()) - 4 - kStep * colors.count();
  add_text(right_, y, "end", high_end);
  for (int i = 0; i < colors.count(); ++i) {
    add("<rect class=\"cell {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"9\"/>\n",
        level_style(rises ? i : colors.count() - 1 - i), x + kStep * i, y - 9, kStep);
  }
  const std::string text = colors.label() + " " + low_end;
  add_text(x - 4, y, "end", text);
  return x - kCharacter * static_cast<double>(width_of(text)) - 20;
}

std::string SvgPanel::mark(Shape shape, double x, double y) const {
  const double r = size_.radius;
  if (shape == Shape::kCross) {
    return fmt::format("M{:.1f} {:.1f}l{} {}m0 -{}l-{} {}", x - r, y - r, 2 * r, 2 * r, 2 * r,
                       2 * r, 2 * r);
  }
  return fmt::format("M{:.1f} {:.1f}a{} {} 0 1 0 {} 0a{} {} 0 1 0 -{} 0", x - r, y, r, r, 2 * r, r,
                     r, 2 * r);
}

std::string SvgPanel::arrow(bool up, double x, double y) const {
  const double r = size_.radius + 0.5, tip = up ? -r : r;
  return fmt::format("M{:.1f} {:.1f}l{} {}h-{}z", x, y, r, -2 * tip, 2 * r);
}

const char* shape_style(Shape shape) {
  switch (shape) {
    case Shape::kDot: return "dot";
    case Shape::kRing: return "ring";
    case Shape::kCross: return "cross";
  }
  return "";
}

std::string level_style(int level) { return fmt::format("l{}", level); }

const char* tone_style(size_t index, bool faint) {
  return faint ? "faint" : kTones[index % kTones.size()];
}

size_t characters_in(double pixels) {
  return static_cast<size_t>(std::max(3.0, pixels / kCharacter));
}

}  // namespace gallop::plot

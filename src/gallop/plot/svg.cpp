#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/plot/svg_panel.h"

namespace gallop::plot {

namespace {

// Large for a single plot, otherwise small.
constexpr PanelSize kLarge = {720, 400, 64, 24, 56, 52, 9, 6, 3.5, 10};
constexpr PanelSize kSmall = {280, 194, 48, 14, 44, 40, 5, 4, 2.5, 10};
// By the number of plots side by side.
constexpr double kPageWidth = 960;
constexpr std::array<PanelSize, 3> kSizes = {{
    {kPageWidth, 380, 72, 40, 76, 52, 9, 6, 3.5, 28},
    {kPageWidth / 2, 330, 64, 20, 72, 52, 7, 6, 3, 28},
    {kPageWidth / 3, 250, 54, 14, 64, 44, 5, 5, 2.5, 26},
}};

constexpr double kEdge = 8;      // Margin around all plots.
constexpr double kHeading = 34;  // Height of a page's heading.

constexpr const char* kStyle = R"css(
svg { background: #ffffff; }
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #5f6b7a; }
text.title { font-size: 14px; font-weight: 600; fill: #1c2127; }
text.heading { font-size: 17px; font-weight: 600; fill: #1c2127; }
text.name { fill: #1c2127; }
.small text { font-size: 11px; }
.small text.title { font-size: 12.5px; }
.grid { stroke: #e3e7ec; }
.frame { stroke: #97a1ad; }
text.mark-label { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
path { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.thin { stroke-width: 1; stroke-opacity: 0.6; }
.row { stroke-width: 1.5; stroke-opacity: 0.75; }
.dot { fill: currentColor; stroke: #ffffff; stroke-width: 0.75; }
.ring, .cross { stroke-width: 1.5; }
.cell { fill: currentColor; stroke: none; shape-rendering: crispEdges; }
.bar { fill: currentColor; }
.filled { fill: currentColor; fill-opacity: 0.2; }
text.on-low { fill: #1c2127; } text.on-high { fill: #ffffff; }
.a { color: #0f766e; } .b { color: #b45309; } .c { color: #4477cc; } .d { color: #8e5bc0; }
.faint { color: #9aa5b1; }
.mark { stroke: #cc5544; stroke-dasharray: 4 3; }
)css";
constexpr const char* kDarkStyle = R"css(
  svg { background: #15191e; }
  text { fill: #97a1ad; } text.title, text.heading, text.name { fill: #dfe4ea; }
  text.mark-label { stroke: #15191e; }
  .grid { stroke: #262d35; } .frame { stroke: #66707c; }
  .dot { stroke: #15191e; }
  .a { color: #2dd4bf; } .b { color: #f59e0b; } .c { color: #7aa2f7; } .d { color: #c099ff; }
  .faint { color: #5d6873; }
  text.on-low { fill: #ffffff; } text.on-high { fill: #1c2127; }
  .mark { stroke: #ff8a75; }
)css";

// Equidistant colors of viridis (Smith and van der Walt, 2015), whose lightness is monotonic, also
// for color vision deficiencies.
constexpr std::array<std::array<int, 3>, 9> kViridis = {{{0x44, 0x01, 0x54},
                                                         {0x47, 0x2d, 0x7b},
                                                         {0x3b, 0x52, 0x8b},
                                                         {0x2c, 0x72, 0x8e},
                                                         {0x21, 0x91, 0x8c},
                                                         {0x28, 0xae, 0x80},
                                                         {0x5e, 0xc9, 0x62},
                                                         {0xad, 0xdc, 0x30},
                                                         {0xfd, 0xe7, 0x25}}};

std::string viridis(double share) {
  const double place = share * (kViridis.size() - 1);
  const auto before = std::min(static_cast<size_t>(place), kViridis.size() - 2);
  std::string text = "#";
  for (size_t i = 0; i < 3; ++i) {
    const double value = std::lerp(kViridis[before][i], kViridis[before + 1][i],
                                   place - static_cast<double>(before));
    text += fmt::format("{:02x}", static_cast<int>(std::lround(value)));
  }
  return text;
}

// The last level has the highest contrast to the background.
std::string level_styles(bool dark) {
  std::string text;
  for (int level = 0; level < kColorLevels; ++level) {
    const double share = static_cast<double>(level) / (kColorLevels - 1);
    text += fmt::format(".{} {{ color: {}; }}{}", level_style(level),
                        viridis(dark ? std::lerp(0.1, 1, share) : std::lerp(0.95, 0, share)),
                        level % 4 == 3 ? "\n" : " ");
  }
  return text;
}

std::string head(std::string_view title, double width, double height, bool has_levels) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\">\n<title>{2}</title>\n<style>{3}{4}@media "
      "(prefers-color-scheme: dark) {{{5}{6}}}\n</style>\n",
      width, height, xml_text(title), kStyle, has_levels ? level_styles(false) : "", kDarkStyle,
      has_levels ? level_styles(true) : "");
}

// Bar plots and heat maps are as high as their content.
double height_of(const Plot& plot, const PanelSize& size) {
  if (const auto* const bars = std::get_if<BarPlot>(&plot)) {
    return std::min(size.height, height_of_bars(*bars, size));
  }
  if (const auto* const map = std::get_if<HeatMap>(&plot)) return height_of_heat_map(*map, size);
  return size.height;
}

// The size of each plot of a row.
PanelSize size_of(const Row& row) {
  if (row.plots.empty() || row.columns < row.plots.size() || row.columns > kSizes.size()) {
    throw UsageError("there is nothing to plot");
  }
  PanelSize size = kSizes[row.columns - 1];
  double needed = 0;
  for (const Plot& plot : row.plots) {
    needed = std::max(needed, height_of(plot, size));
  }
  size.height = needed;
  return size;
}

}  // namespace

std::string to_svg(const std::vector<XyPlot>& plots, int columns) {
  if (plots.empty() || columns < 1) throw UsageError("there is nothing to plot");
  const PanelSize& size = columns == 1 ? kLarge : kSmall;
  const auto across = std::min(plots.size(), static_cast<size_t>(columns));
  const size_t down = (plots.size() + across - 1) / across;
  const double width = size.width * static_cast<double>(across) + 2 * kEdge;
  const double height = size.height * static_cast<double>(down) + 2 * kEdge;
  bool has_levels = false;
  for (const XyPlot& plot : plots) {
    has_levels = has_levels || ColorLevels::of(plot, kColorLevels).is_used();
  }
  std::string out = head(plots.front().title, width, height, has_levels);
  out += columns == 1 ? "<g class=\"large\">\n" : "<g class=\"small\">\n";
  for (size_t i = 0; i < plots.size(); ++i) {
    const size_t row = i / across, column = i % across;
    SvgPanel panel(size, kEdge + size.width * static_cast<double>(column),
                   kEdge + size.height * static_cast<double>(row), out);
    draw(plots[i], panel);
  }
  return out + "</g>\n</svg>\n";
}

std::string to_svg(const Page& page) {
  const double heading = page.title.empty() ? 0 : kHeading;
  double height = 2 * kEdge + heading;
  for (const Row& row : page.rows) height += size_of(row).height;
  std::string out = head(page.title, kPageWidth + 2 * kEdge, height, /*has_levels=*/true);
  if (heading > 0) {
    out += fmt::format("<text class=\"heading\" x=\"{}\" y=\"{}\">{}</text>\n", 2 * kEdge,
                       kEdge + 20, xml_text(page.title));
  }
  double y = kEdge + heading;
  for (const Row& row : page.rows) {
    const PanelSize size = size_of(row);
    double x = kEdge;
    out += row.columns == kSizes.size() ? "<g class=\"small\">\n" : "<g>\n";
    for (const Plot& plot : row.plots) {
      SvgPanel panel(size, x, y, out);
      std::visit([&panel](const auto& one) { draw(one, panel); }, plot);
      x += size.width;
    }
    out += "</g>\n";
    y += size.height;
  }
  return out + "</svg>\n";
}

}  // namespace gallop::plot

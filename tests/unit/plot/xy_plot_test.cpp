#include <cmath>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/plot/plot.h"
#include "gallop/plot/ticks.h"

namespace gallop::plot {
namespace {

const double kNothing = std::numeric_limits<double>::quiet_NaN();

XyPlot line_from_0_to_1() { return {"title", {"epoch"}, {"rate"}, {{"line", {0, 4}, {0, 1}}}}; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Characters, not bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> labels_of(const AxisTicks& axis) {
  std::vector<std::string> labels;
  for (const Tick& tick : axis.ticks()) labels.push_back(tick.label);
  return labels;
}

using Labels = std::vector<std::string>;

TEST(Ticks, LinearOnesAreRoundAndWiden) {
  const Axis axis{"rate"};
  EXPECT_EQ(labels_of({axis, {0, 0.4}, 4, true}), Labels({"0", "0.1", "0.2", "0.3", "0.4"}));
  EXPECT_EQ(labels_of({axis, {0.03, 0.37}, 4, true}), Labels({"0", "0.1", "0.2", "0.3", "0.4"}));
  EXPECT_EQ(labels_of({axis, {-3, 17}, 4, true}), Labels({"-5", "0", "5", "10", "15", "20"}));
  EXPECT_EQ(labels_of({axis, {0.5, 9.1}, 5, false}), Labels({"2", "4", "6", "8"}));
  EXPECT_EQ(labels_of({axis, {0, 3e-5}, 3, true}), Labels({"0", "1e-5", "2e-5", "3e-5"}));
  EXPECT_EQ(labels_of({axis, {1e6, 3e6}, 2, true}), Labels({"0", "2e6", "4e6"}));
}

TEST(Ticks, AFlatLineHasAMargin) {
  const AxisTicks high({"rate"}, {0.2, 0.2}, 4, true), zero({"rate"}, {0, 0}, 4, true),
      low({"rate"}, {-3}, 4, true);
  EXPECT_GT(high.place(0.2), 0.5);
  EXPECT_LT(high.place(0.2), 0.9);
  EXPECT_EQ(zero.place(0), 0);
  EXPECT_GT(low.place(-3), 0.1);
}

// Between such values a step would not be representable.
TEST(Ticks, ValuesThatDifferByRoundingAreAFlatLine) {
  for (const double scale : {1.0, -1.0, 1e-300, 1e300}) {
    const double low = 0.3 * scale, high = (0.1 + 0.2) * scale;
    ASSERT_NE(low, high);
    const AxisTicks ticks({"rate"}, {low, high}, 4, true),
        given({"rate", Scale::kLinear, low, high}, {}, 4, false);
    EXPECT_LE(ticks.ticks().size(), 10U);
    EXPECT_GT(ticks.high() - ticks.low(), 0.1 * std::abs(scale));
    EXPECT_LE(given.ticks().size(), 10U);
  }
  EXPECT_LE(AxisTicks({"rate", Scale::kLog}, {0.3, 0.1 + 0.2}, 8, false).ticks().size(), 20U);
}

TEST(Ticks, LogarithmicOnesArePowersAndOmitNonPositiveValues) {
  const Axis axis{"rate", Scale::kLog};
  const AxisTicks ticks(axis, {1e-6, 1, 0, -2, kNothing}, 8, false);
  EXPECT_EQ(labels_of(ticks), Labels({"1e-6", "1e-5", "1e-4", "0.001", "0.01", "0.1", "1"}));
  EXPECT_NEAR(ticks.place(1e-3), 0.5, 1e-12);
  EXPECT_TRUE(std::isnan(ticks.place(0)));
  EXPECT_EQ(labels_of({axis, {1e-6, 1}, 3, false}), Labels({"1e-6", "1e-4", "0.01", "1"}));
  EXPECT_EQ(labels_of({axis, {0.1, 5}, 8, false}), Labels({"0.1", "0.2", "0.5", "1", "2", "5"}));
}

TEST(Ticks, GivenBoundsAreKept) {
  const AxisTicks ticks({"loss", Scale::kLinear, 0.5, 3.}, {-100, 100}, 5, true);
  EXPECT_EQ(ticks.place(0.5), 0);
  EXPECT_EQ(ticks.place(3), 1);
}

TEST(ToText, DrawsInAscii) {
  EXPECT_EQ(to_text(line_from_0_to_1(), {.columns = 30, .rows = 5, .unicode = false}),
            "title\n"
            "rate\n"
            "  1 +                    ****\n"
            "    |               *****\n"
            "0.5 +         ******\n"
            "    |    *****\n"
            "  0 +****\n"
            "    ++-----------+----------+\n"
            "     0           2          4\n"
            "              epoch\n");
}

TEST(ToText, DrawsInDots) {
  EXPECT_EQ(to_text(line_from_0_to_1(), {.columns = 30, .rows = 3}),
            "title\n"
            "rate\n"
            "  1 ┤                ⢀⣀⠤⠤⠔⠒⠊⠉\n"
            "0.5 ┤       ⢀⣀⣀⠤⠤⠒⠒⠉⠉⠁\n"
            "  0 ┤⣀⡠⠤⠔⠒⠒⠉⠁\n"
            "    └┬───────────┬──────────┬\n"
            "     0           2          4\n"
            "              epoch\n");
}

TEST(ToText, StaysWithinItsWidth) {
  XyPlot plot = line_from_0_to_1();
  plot.series.push_back({"other", {0, 4}, {-1e-7, 1e5}});
  plot.marks = {{3, "steepest"}};
  for (int columns = 0; columns < 200; columns += 7) {
    for (const bool unicode : {true, false}) {
      for (const std::string& line : lines_of(to_text(plot, {columns, 8, unicode}))) {
        EXPECT_LE(width_of(line), static_cast<size_t>(std::max(30, columns))) << line;
        EXPECT_TRUE(unicode || width_of(line) == line.size()) << line;
      }
    }
  }
}

TEST(ToText, DistinguishesSeriesAndMarks) {
  XyPlot plot = line_from_0_to_1();
  plot.series.push_back({"other", {0, 4}, {1, 0}});
  plot.marks = {{3, "steepest"}, {9, "beyond the axis"}};
  plot.x.max = 4;
  const std::string text = to_text(plot, {.columns = 40, .rows = 6, .unicode = false});
  EXPECT_NE(text.find("* line   o other\n: 3: steepest\n"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), ':'), 8) << text;  // 4 are beside the lines.
}

TEST(ToText, LeavesGapsAndAcceptsAnyData) {
  XyPlot plot{"", {}, {}, {{"", {0, 1, 2, 3, 4}, {0, 1, kNothing, 1, 0}}}};
  for (const std::string& line : lines_of(to_text(plot, {.columns = 30, .unicode = false}))) {
    EXPECT_TRUE(line.size() < 16 || line[15] == ' ' || line[15] == '-') << line;
  }
  plot.series = {{"", {}, {}}, {"", {1}, {INFINITY}}, {"", {1, 2}, {1}}};
  for (const Scale scale : {Scale::kLinear, Scale::kLog}) {
    plot.x.scale = plot.y.scale = scale;
    EXPECT_FALSE(to_text(plot, {}).empty());
    EXPECT_EQ(to_svg({plot}).find("nan"), std::string::npos);
    EXPECT_EQ(to_svg({plot}).find("inf"), std::string::npos);
  }
  plot.series.clear();
  EXPECT_FALSE(to_text(plot, {}).empty());
}

TEST(ToSvg, DrawsOneLineOfFewPoints) {
  XyPlot plot = line_from_0_to_1();
  plot.series[0] = {"line", {}, {}};
  for (int i = 0; i <= 1000; ++i) {
    plot.series[0].x.push_back(i);
    plot.series[0].y.push_back(i < 500 ? i : 1000 - i);
  }
  EXPECT_NE(to_svg({plot}).find("d=\"M72.0 356.0L388.0 64.0L704.0 356.0\""), std::string::npos)
      << to_svg({plot});
}

// A path that leaves out points is nowhere off the curve, however dense its points are.
TEST(ToSvg, FollowsACurve) {
  for (const int count : {100, 100'000}) {
    XyPlot plot = line_from_0_to_1();
    plot.series[0] = {"line", {}, {}};
    for (int i = 0; i <= count; ++i) {
      plot.series[0].x.push_back(10. * i / count);
      plot.series[0].y.push_back(1 - std::cos(10. * i / count));
    }
    const std::string svg = to_svg({plot});
    std::istringstream path(svg.substr(svg.find(" d=\"M") + 4));
    char command = 0;
    double x = 0, y = 0, last_x = 72, last_y = 356, largest = 0;
    int corners = 0;
    for (; path >> command >> x >> y; last_x = x, last_y = y, ++corners) {
      for (double share = 0; share <= 1; share += 0.1) {
        const double at = std::lerp(last_x, x, share), value = 10 * (at - 72) / 632;
        const double drawn = (356 - std::lerp(last_y, y, share)) / 292 * 2;
        largest = std::fmax(largest, std::abs(drawn - (1 - std::cos(value))) * 146);
      }
    }
    EXPECT_NEAR(last_x, 704, 0.05);
    EXPECT_LT(largest, count == 100 ? 0.5 : 0.3);  // Pixels, written to tenths.
    EXPECT_LT(corners, 300);
  }
}

TEST(ToSvg, KeepsThePeaksOfSteepLines) {
  XyPlot plot = line_from_0_to_1();
  plot.series[0] = {"line", {0, 2, 2, 2, 4}, {0, 0, 1, 0.5, 0.5}};
  EXPECT_NE(to_svg({plot}).find("L388.0 356.0L388.0 64.0L388.0 210.0L704.0 210.0\""),
            std::string::npos);
}

TEST(ToSvg, EscapesMarkup) {
  XyPlot plot = line_from_0_to_1();
  plot.title = "<script> & \"more\"";
  plot.marks = {{2, "<b>"}};
  const std::string svg = to_svg({plot, plot}, 2);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt; &amp; &quot;more&quot;"), std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(svg.find("width=\"576\" height=\"210\""), std::string::npos);
}

TEST(ToSvg, RejectsAnEmptyList) { EXPECT_THROW(to_svg(std::vector<XyPlot>{}), UsageError); }

}  // namespace
}  // namespace gallop::plot

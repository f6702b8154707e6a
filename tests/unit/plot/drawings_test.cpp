#include <cmath>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/plot/color_levels.h"
#include "gallop/plot/plot.h"
#include "gallop/plot/ticks.h"
#include "unit/plot/well_formed.h"

namespace gallop::plot {
namespace {

const double kNothing = std::numeric_limits<double>::quiet_NaN();
const TextStyle kAscii{.columns = 40, .rows = 5, .unicode = false};

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

XyPlot five_points() {
  XyPlot plot{.title = "loss by trial", .x = {.label = "trial", .whole = true}, .y = {"loss"}};
  plot.y.max = 4.;
  plot.series = {{"best", {0, 2, 2, 4}, {3, 3, 1, 1}}};
  plot.points = {{.name = "complete", .x = {0, 1, 2}, .y = {3, 9, 1}},
                 {.name = "pruned", .x = {3, 4}, .y = {2, kNothing}, .shape = Shape::kCross}};
  return plot;
}

ParallelPlot three_rows() {
  return {.title = "all",
          .axes = {{"loss"}, {"name", Scale::kLinear, {}, {}, {"sgd", "adam"}}, {"beta"}},
          .rows = {{1, 0, kNothing}, {2, 1, 0.5}, {5, 1, 0.9}},
          .values = {1, 2, 5},
          .labels = {"first", "second", "third"},
          .color = {.label = "loss", .low_stands_out = true}};
}

HeatMap three_by_two() {
  return {.title = "counts",
          .row_label = "true",
          .column_label = "predicted",
          .rows = {"cat", "größe", "<b>"},
          .columns = {"x", "y"},
          .values = {1, kNothing, 0.25, 0.75, 0, 0.5},
          .texts = {"12", "0", "1", "3", "0", "7"},
          .labels = {"cat as x", "", "größe as x", "größe as y", "<b> as x", "<b> as y"},
          .color = {.label = "share", .min = 0., .max = 1.}};
}

TEST(PointsInText, HaveShapesAndArrowsBeyondTheAxis) {
  EXPECT_EQ(to_text(five_points(), kAscii),
            "loss by trial\n"
            "loss\n"
            "4 +         ^\n"
            "  | o-----------------\n"
            "2 +                  -       x\n"
            "  |                  o----------------\n"
            "0 +\n"
            "  +-+----------------+---------------+-\n"
            "    0                2               4\n"
            "                  trial\n"
            "- best   o complete   x pruned\n");
}

TEST(PointsInText, ShowValuesByThreeMarks) {
  XyPlot plot{.title = "", .x = {"lr"}, .y = {"loss"}};
  plot.points = {
      {.name = "complete", .x = {0, 1, 2, 2}, .y = {0, 1, 2, 2}, .values = {0, 4, 9, 1}}};
  plot.color = {.label = "trial", .whole = true};
  const std::string text = to_text(plot, kAscii);
  EXPECT_NE(text.find("\ntrial: . 0 to 3   o to 6   @ to 9\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("complete"), std::string::npos);
  EXPECT_EQ(count(text, "@"), 2u) << text;  // It covers the fourth.
}

TEST(SurfaceInText, IsShadedAndLeavesHoles) {
  XyPlot plot{.title = "", .x = {"a"}, .y = {"b"}};
  plot.surface = Surface{{0, 1, 0}, {0, 0, 1}, {0, 8, 0}};
  plot.color = {.label = "loss", .low_stands_out = true};
  EXPECT_EQ(to_text(plot, kAscii),
            "b\n"
            "  1 +###\n"
            "    |#########+\n"
            "0.5 +#########++++++++\n"
            "    |#########++++++++-------\n"
            "  0 +#########++++++++---------.....\n"
            "    ++----------------+---------------+\n"
            "     0               0.5              1\n"
            "                     a\n"
            "loss: . 8 to 6   - to 4   + to 2\n"
            "# to 0\n");
}

TEST(BarsInText, AreAsLongAsTheirValues) {
  const BarPlot plot{"importance",
                     {{"lr", 0.6, "60.0 %"}, {"größe", 0.3, "30.0 %"}, {"x", 0, "0.0 %"}}};
  EXPECT_EQ(to_text(plot, kAscii),
            "importance\n"
            "lr     60.0 %  #########################\n"
            "größe  30.0 %  #############\n"
            "x       0.0 %\n");
}

TEST(ParallelInText, HasARowForMissingValues) {
  EXPECT_EQ(to_text(three_rows(), kAscii).substr(0, 4), "all\n");
  const std::string text = to_text(three_rows(), kAscii);
  for (const char* part : {"loss", "name", "beta", "|5 ", "|adam ", "|sgd ", "none", "|0.9"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(count(text, "none"), 1u);
}

TEST(ParallelInText, ContinuesInBlocksIfAxesDoNotFit) {
  ParallelPlot plot = three_rows();
  for (int i = 0; i < 4; ++i) {
    plot.axes.push_back({"more" + std::to_string(i)});
    for (auto& row : plot.rows) row.push_back(i);
  }
  const std::string text = to_text(plot, kAscii);
  EXPECT_EQ(count(text, "loss        "), 3u) << text;  // Three axes each.
  for (int i = 0; i < 4; ++i) EXPECT_EQ(count(text, "more" + std::to_string(i)), 1u);
}

TEST(AnyInText, StaysWithinItsWidth) {
  XyPlot long_names = five_points();
  long_names.title = long_names.y.label = long_names.x.label = std::string(300, 'n');
  long_names.x = {.label = "x", .categories = {std::string(100, 'a'), "größe\n", "c", "d", "e"}};
  ParallelPlot parallel = three_rows();
  parallel.axes[2].label = std::string(100, 'p');
  parallel.axes[1].categories[0] = std::string(100, 'q');
  const BarPlot bars{std::string(100, 't'), {{std::string(100, 'b'), 1, "100 %"}}};
  HeatMap heat = three_by_two();
  heat.title = heat.row_label = heat.rows[0] = heat.columns[1] = std::string(100, 'h');
  for (int columns = 0; columns < 200; columns += 9) {
    for (const bool unicode : {true, false}) {
      for (const Plot& plot : {Plot(long_names), Plot(parallel), Plot(bars), Plot(heat)}) {
        std::istringstream lines(to_text(plot, {columns, 8, unicode}));
        for (std::string line; std::getline(lines, line);) {
          const auto width =
              std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
          EXPECT_LE(width, std::max(45, columns)) << line;
        }
      }
    }
  }
}

TEST(HeatMapInText, ShowsTextsIfTheyFit) {
  EXPECT_EQ(to_text(three_by_two(), kAscii),
            "counts\n"
            "rows: true, columns: predicted\n"
            "             x        y\n"
            "cat         12\n"
            "größe        1        3\n"
            "<b>          0        7\n");
}

TEST(HeatMapInText, IsShadedIfTextsDoNotFitAndReportsOmissions) {
  HeatMap map = three_by_two();
  map.texts.clear();
  EXPECT_EQ(to_text(map, kAscii),
            "counts\n"
            "rows: true, columns: predicted\n"
            "cat   #\n"
            "größe -#\n"
            "<b>   .+\n"
            "share: . 0 to 0.25   - to 0.5\n"
            "+ to 0.75   # to 1\n");
  map.columns.assign(100, "c");
  map.values.assign(300, 0.5);
  const std::string text = to_text(map, kAscii);
  EXPECT_NE(text.find("and 66 more columns\n"), std::string::npos) << text;
}

TEST(HeatMapAsSvg, HasACellForEachValueWithItsTextAndLabel) {
  const HeatMap map = three_by_two();
  const std::string svg = to_svg(Page{"heat", {{{map}, 1}}});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count(svg, "height=\"30.0\"><title>"), 5u) << svg;
  EXPECT_NE(svg.find("<title>&lt;b&gt; as y</title>"), std::string::npos);
  EXPECT_EQ(count(svg, "class=\"on-low\""), 2u);
  EXPECT_EQ(count(svg, "class=\"on-high\""), 3u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(HeatMapAsSvg, StaysWithinItsWidthWithoutTextsInNarrowCells) {
  HeatMap map{.title = "many", .row_label = "rows", .column_label = "columns"};
  for (int i = 0; i < 100; ++i) map.rows.push_back("class " + std::to_string(i));
  map.columns = map.rows;
  map.values.assign(10'000, 0.5);
  map.texts.assign(10'000, "7");
  const std::string svg = to_svg(Page{"", {{{map}, 1}}});
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count(svg, ">7</text>"), 0u);
  EXPECT_EQ(count(svg, "width=\"8.3\" height=\"7.2\"/>"), 10'000u);
}

TEST(Steps, EncloseAHistogram) {
  const Series steps = steps_of("n", {0, 1, 3}, {5, 2});
  EXPECT_EQ(steps.x, (std::vector<double>{0, 0, 1, 1, 3, 3}));
  EXPECT_EQ(steps.y, (std::vector<double>{0, 5, 5, 2, 2, 0}));
  const std::string svg = to_svg(Page{"", {{{XyPlot{"", {"x"}, {"y"}, {steps}}}, 1}}});
  EXPECT_EQ(count(svg, "class=\"a filled\""), 1u) << svg;
}

TEST(PageAsSvg, HasAMarkForEachPointAndALabelForEachLine) {
  XyPlot plot = five_points();
  plot.points[0].labels = {"trial 0", "trial 1 <b>&", "trial 2"};
  const std::string svg =
      to_svg(Page{"study <a>",
                  {{{plot, BarPlot{"importance", {{"lr", 1, "100 %"}}}}, 2}, {{three_rows()}, 1}}});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count(svg, "<title>trial "), 3u);
  EXPECT_NE(svg.find("<title>trial 1 &lt;b&gt;&amp;</title>"), std::string::npos);
  EXPECT_EQ(count(svg, "class=\"cross c\" d=\"M"), 2u);  // One point, and the legend's.
  EXPECT_EQ(count(svg, "class=\"row l"), 3u);
  EXPECT_EQ(count(svg, "class=\"bar a\""), 1u);
  EXPECT_EQ(count(svg, ">none</text>"), 1u);
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_FALSE(is_well_formed("<g><a></g></a>") || is_well_formed("<g>a & b</g>"));
}

TEST(PageAsSvg, DrawsManyPointsOfOneColorAsOnePath) {
  XyPlot plot{.title = "", .x = {"x"}, .y = {"y"}};
  plot.points = {{.name = "", .x = {1, 2, 3}, .y = {1, 2, 3}}};
  const std::string svg = to_svg(Page{"", {{{plot}, 1}}});
  EXPECT_EQ(count(svg, "class=\"dot b\""), 1u) << svg;
}

TEST(PageAsSvg, ShowsTheBarsThatFitAndReportsTheRest) {
  BarPlot bars{"many", {}};
  for (int i = 0; i < 100; ++i) bars.bars.push_back({"p" + std::to_string(i), 1, ""});
  const std::string svg = to_svg(Page{"", {{{bars}, 2}}});
  const size_t shown = count(svg, "class=\"bar a\"");
  EXPECT_GT(shown, 10u);
  EXPECT_NE(svg.find("and " + std::to_string(100 - shown) + " more"), std::string::npos);
}

TEST(PageAsSvg, IsAsHighAsItsBars) {
  const auto height = [](const Page& page) {
    const std::string svg = to_svg(page);
    const size_t begin = svg.find("height=\"") + 8;
    return std::stod(svg.substr(begin, svg.find('"', begin) - begin));
  };
  const BarPlot bars{"two", {{"a", 1, ""}, {"b", 2, ""}}};
  EXPECT_LT(height({"", {{{bars}, 1}}}), 220);
  EXPECT_GT(height({"", {{{five_points()}, 1}}}), 380);
  EXPECT_EQ(height({"", {{{bars, five_points()}, 2}}}), height({"", {{{five_points()}, 2}}}));
  EXPECT_GT(height({"a heading", {{{bars}, 1}}}), height({"", {{{bars}, 1}}}));
}

TEST(PageAsSvg, RejectsRowsWithoutPlotsOrSpace) {
  const XyPlot plot = five_points();
  EXPECT_THROW(to_svg(Page{"", {{{}, 1}}}), UsageError);
  EXPECT_THROW(to_svg(Page{"", {{{plot, plot}, 1}}}), UsageError);
  EXPECT_THROW(to_svg(Page{"", {{{plot}, 4}}}), UsageError);
}

TEST(ColorLevels, ExcludeOutliers) {
  const ColorLevels high({.label = ""}, {0, 10, kNothing}, 5),
      low({.low_stands_out = true}, {0, 10}, 5), bounded({.max = 5}, {0, 100}, 5), one({}, {3}, 5),
      none({}, {kNothing}, 5);
  EXPECT_EQ(high.level(0), 0);
  EXPECT_EQ(high.level(10), 4);
  EXPECT_EQ(high.level(kNothing), std::nullopt);
  EXPECT_EQ(low.level(0), 4);
  EXPECT_EQ(low.edge(0), 10);
  EXPECT_EQ(bounded.level(100), 4);
  EXPECT_EQ(bounded.level(1), 1);
  EXPECT_EQ(one.level(3), 4);
  EXPECT_TRUE(high.is_used());
  EXPECT_FALSE(none.is_used());
}

TEST(Ticks, OfCategoriesAndWholeNumbers) {
  const AxisTicks names({.label = "", .categories = {"a", "b"}}, {}, 4, true);
  EXPECT_EQ(names.place(0), 0.25);
  EXPECT_EQ(names.place(1), 0.75);
  const AxisTicks whole({.label = "", .whole = true}, {0, 2}, 9, false);
  ASSERT_EQ(whole.ticks().size(), 3u);
  const AxisTicks narrow({.label = "", .scale = Scale::kLog}, {0.031, 0.039}, 5, false);
  EXPECT_GE(narrow.ticks().size(), 2u);
  const AxisTicks margin({.label = ""}, {0, 1}, 4, false, 0.1);
  EXPECT_NEAR(margin.place(0), 0.1, 1e-12);
  EXPECT_NEAR(margin.place(1), 0.9, 1e-12);
}

}  // namespace
}  // namespace gallop::plot

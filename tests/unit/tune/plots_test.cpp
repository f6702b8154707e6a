#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "build.h"
#include "gallop/tune/importance/importance.h"
#include "gallop/tune/plots/results.h"
#include "gallop/tune/plots/study_plots.h"
#include "test_study.h"

namespace gallop::tune {
namespace {

using Vector = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Space one_number() { return Space({{"x", Interval{}}}, {}); }

// `mode` is "a" or "b"; `depth` is only there where it is "b"; `fixed` is always the same.
Space conditional() {
  return Space(
      {{"lr", Interval{.low = 1e-3, .high = 1, .scale = Scale::kLog}},
       {"mode", Choices{{"\"a\"", "\"b\""}}},
       {"depth", Interval{.low = 1, .high = 9, .step = 1, .integer = true}, Condition{1, {1}}},
       {"fixed", Choices{{"3"}}}},
      {});
}

StudySettings settings(Space space, std::vector<Objective> objectives) {
  StudySettings made = TestStudy::settings_of(std::move(space));
  made.objectives = std::move(objectives);
  return made;
}

// One metric, with trials of these losses.
TestStudy completed(const Vector& losses, bool maximize = false) {
  TestStudy test(settings(one_number(), {{"metric", maximize}}));
  for (size_t i = 0; i < losses.size(); ++i) {
    test.complete(test.start({static_cast<double>(i) / 100}), losses[i]);
  }
  return test;
}

const plot::Points* find(const plot::XyPlot& plot, const std::string& name) {
  for (const plot::Points& points : plot.points) {
    if (points.name == name) return &points;
  }
  return nullptr;
}

const plot::Series* find_line(const plot::XyPlot& plot, const std::string& name) {
  for (const plot::Series& series : plot.series) {
    if (series.name == name) return &series;
  }
  return nullptr;
}

const PlotKind& kind(const std::string& name) {
  for (const PlotKind& one : plot_kinds()) {
    if (one.name == name) return one;
  }
  throw std::out_of_range(name);
}

std::string refused(const Study& study, const std::string& name, const PlotChoice& choice = {}) {
  return refusal([&] { study_plots(study, kind(name), choice); });
}

TEST(HistoryPlot, StepsDownToTheBestSoFar) {
  const TestStudy test = completed({5, 3, 4, 2, 9});
  const plot::XyPlot plot = history_plot(test.study, 0);
  ASSERT_EQ(plot.points.size(), 1u);
  EXPECT_EQ(plot.points[0].x, Vector({0, 1, 2, 3, 4}));
  EXPECT_EQ(plot.points[0].y, Vector({5, 3, 4, 2, 9}));
  ASSERT_EQ(plot.series.size(), 1u);
  EXPECT_EQ(plot.series[0].x, Vector({0, 1, 1, 3, 3, 4}));
  EXPECT_EQ(plot.series[0].y, Vector({5, 5, 3, 3, 2, 2}));
  EXPECT_EQ(plot.points[0].labels[1], "trial 1: metric 3, x 0.01");
}

TEST(HistoryPlot, ShowsMaximizedMetricsUnchanged) {
  const plot::XyPlot plot = history_plot(completed({-0.5, -0.2, -0.9}, true).study, 0);
  EXPECT_EQ(plot.points[0].y, Vector({0.5, 0.2, 0.9}));
  EXPECT_EQ(plot.series[0].y, Vector({0.5, 0.5, 0.9}));
}

TEST(HistoryPlot, DistinguishesPrunedAndInfeasibleTrialsAndOmitsTheRest) {
  TestStudy test(one_number(), 1, 1);
  test.end(test.start({0.1}), TrialState::kComplete, {4}, {-1});
  test.end(test.start({0.2}), TrialState::kComplete, {1}, {2});  // Above its limit.
  const int64_t pruned = test.start({0.3});
  test.report(pruned, 1, 9);
  test.report(pruned, 2, 7);
  test.end(pruned, TrialState::kPruned, {});
  test.end(test.start({0.4}), TrialState::kPruned, {});  // Without a report.
  test.end(test.start({0.5}), TrialState::kFailed, {});
  test.end(test.start({0.6}), TrialState::kComplete, {std::nan("")}, {0});
  test.end(test.start({0.7}), TrialState::kComplete, {kInfinity}, {0});
  test.report(test.start({0.8}), 1, 0);  // Runs.
  const plot::XyPlot plot = history_plot(test.study, 0);
  ASSERT_EQ(plot.points.size(), 3u);
  EXPECT_EQ(find(plot, "complete")->x, Vector({0}));
  EXPECT_EQ(find(plot, "over limit")->x, Vector({1}));
  EXPECT_EQ(find(plot, "pruned")->x, Vector({2}));
  EXPECT_EQ(find(plot, "pruned")->y, Vector({7}));
  EXPECT_EQ(plot.series[0].x, Vector({0, 2}));
  EXPECT_EQ(plot.series[0].y, Vector({4, 4}));
}

TEST(HistoryPlot, HasOnePlotPerMetric) {
  TestStudy test(settings(one_number(), {{"loss", false}, {"accuracy", true}}));
  test.end(test.start({0.1}), TrialState::kComplete, {2, -0.5});
  test.end(test.start({0.2}), TrialState::kComplete, {3, -0.7});
  const auto plots = study_plots(test.study, kind("history"), {});
  ASSERT_EQ(plots.size(), 2u);
  EXPECT_EQ(std::get<plot::XyPlot>(plots[0]).series[0].y, Vector({2, 2}));
  EXPECT_EQ(std::get<plot::XyPlot>(plots[1]).series[0].y, Vector({0.5, 0.5, 0.7}));
  const auto one = study_plots(test.study, kind("history"), {.objectives = {1}});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(std::get<plot::XyPlot>(one[0]).y.label, "accuracy");
}

// Quartiles 2 and 6, so that the fence is at 6 + 3 x 4.
TEST(MetricAxis, EndsAtTheWorstValueWithinTukeysFence) {
  const Vector values = {0, 1, 2, 3, 4, 5, 6, 18, 19};
  EXPECT_EQ(metric_axis({"loss", false}, values).max, 18);
  EXPECT_EQ(metric_axis({"loss", false}, values).min, std::nullopt);
  EXPECT_EQ(metric_axis({"loss", false}, {0, 1, 2, 3, 4, 5, 6, 7, 18}).max, std::nullopt);
  EXPECT_EQ(metric_axis({"loss", false}, {0, 1, 2, 900}).max, std::nullopt);
  Vector turned;
  for (const double value : values) turned.push_back(-value);
  EXPECT_EQ(metric_axis({"accuracy", true}, turned).min, -18);
  EXPECT_EQ(metric_color({"accuracy", true}, turned).min, -18);
  EXPECT_TRUE(metric_color({"loss", false}, values).low_stands_out);
}

TEST(IntermediatePlot, HasALineForEachTrialByItsState) {
  TestStudy test = completed({});
  for (const double loss : {3., 1., 2.}) {
    const int64_t trial = test.start({0.5});
    test.report(trial, 1, loss + 1);
    test.report(trial, 3, loss);
    test.complete(trial, loss);
  }
  const int64_t pruned = test.start({0.5});
  test.report(pruned, 1, 9);
  test.end(pruned, TrialState::kPruned, {});
  const int64_t failed = test.start({0.5});
  test.report(failed, 1, 9);
  test.end(failed, TrialState::kFailed, {});
  test.report(test.start({0.5}), 1, 8);
  const plot::XyPlot plot = intermediate_plot(test.study);
  ASSERT_EQ(plot.series.size(), 4u);
  EXPECT_EQ(find_line(plot, "best")->y, Vector({2, 1}));
  EXPECT_EQ(find_line(plot, "pruned")->y, Vector({9}));
  EXPECT_EQ(find_line(plot, "running")->y, Vector({8}));
  const plot::Series& others = *find_line(plot, "complete");
  ASSERT_EQ(others.x.size(), 5u);
  EXPECT_TRUE(std::isnan(others.x[2]));  // Trials are not connected.
  EXPECT_EQ(others.y[4], 2);
}

TestStudy conditional_study() {
  TestStudy test(settings(conditional(), {{"accuracy", true}}));
  for (const auto& [point, loss] :
       std::vector<std::pair<Point, double>>{{{0.1, 0, kInactive, 0}, -0.8},
                                             {{0.01, 1, 4, 0}, -0.9},
                                             {{0.5, 1, 2, 0}, -0.6},
                                             {{0.2, 1, 8, 0}, -0.7}}) {
    test.complete(test.start(point), loss);
  }
  return test;
}

TEST(ParallelPlot, HasARowForEachTrialIncludingInactiveParameters) {
  const TestStudy test = conditional_study();
  const auto plots = study_plots(test.study, kind("parallel"), {});
  ASSERT_EQ(plots.size(), 1u);
  const auto& plot = std::get<plot::ParallelPlot>(plots[0]);
  ASSERT_EQ(plot.axes.size(), 4u);  // Constant parameters are omitted.
  EXPECT_EQ(plot.axes[1].scale, plot::Scale::kLog);
  EXPECT_EQ(plot.axes[2].categories, std::vector<std::string>({"a", "b"}));
  EXPECT_TRUE(plot.axes[3].whole);
  ASSERT_EQ(plot.rows.size(), 4u);
  EXPECT_EQ(plot.rows[0][0], 0.8);
  EXPECT_TRUE(std::isnan(plot.rows[0][3]));
  EXPECT_EQ(plot.rows[1], Vector({0.9, 0.01, 1, 4}));
  EXPECT_EQ(plot.values, Vector({0.8, 0.9, 0.6, 0.7}));
  EXPECT_FALSE(plot.color.low_stands_out);
}

TEST(ParallelPlot, SelectsTheMostImportantParameters) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 14; ++i) parameters.push_back({"x" + std::to_string(i), Interval{}});
  TestStudy test(settings(Space(std::move(parameters), {}), {{"loss", false}}));
  for (int64_t i = 0; i < 60; ++i) {
    Random random(1, i);
    const Point point = random_point(test.study.space(), random);
    test.complete(test.start(point), point[13]);
  }
  const auto plots = study_plots(test.study, kind("parallel"), {});
  const auto& plot = std::get<plot::ParallelPlot>(plots[0]);
  EXPECT_EQ(plot.axes.size(), 11u);
  EXPECT_EQ(plot.axes.back().label, "x13");
  EXPECT_EQ(plot.title, "loss by 10 of 14 parameters, the most important ones");
  const auto chosen = study_plots(test.study, kind("parallel"), {.parameters = {2, 0}});
  EXPECT_EQ(std::get<plot::ParallelPlot>(chosen[0]).axes[1].label, "x2");
}

TEST(SlicePlot, HasTheTrialsThatHaveTheParameter) {
  const TestStudy test = conditional_study();
  const plot::XyPlot plot = slice_plot(test.study, 0, 2);
  ASSERT_EQ(plot.points.size(), 1u);
  EXPECT_EQ(plot.points[0].x, Vector({4, 2, 8}));
  EXPECT_EQ(plot.points[0].y, Vector({0.9, 0.6, 0.7}));
  EXPECT_EQ(plot.points[0].values, Vector({1, 2, 3}));  // Trial numbers.
  EXPECT_EQ(study_plots(test.study, kind("slice"), {}).size(), 3u);
  EXPECT_EQ(study_plots(test.study, kind("slice"), {.parameters = {2}}).size(), 1u);
}

TEST(ContourPlot, HasEachPairOfParametersWithCommonTrials) {
  const TestStudy test = conditional_study();
  const plot::XyPlot plot = contour_plot(test.study, 0, 0, 2);
  ASSERT_TRUE(plot.surface);
  EXPECT_EQ(plot.surface->x, Vector({0.01, 0.5, 0.2}));
  EXPECT_EQ(plot.surface->y, Vector({4, 2, 8}));
  EXPECT_EQ(plot.surface->values, Vector({0.9, 0.6, 0.7}));
  EXPECT_EQ(find(plot, "best")->x, Vector({0.01}));
  EXPECT_EQ(find(plot, "complete")->x, Vector({0.5, 0.2}));
  EXPECT_EQ(study_plots(test.study, kind("contour"), {}).size(), 1u);
  EXPECT_EQ(study_plots(test.study, kind("contour"), {.parameters = {0, 1, 2}}).size(), 3u);
}

TEST(ImportancePlot, ShowsPedAnova) {
  const TestStudy test = conditional_study();
  const plot::BarPlot plot = importance_plot(test.study, 0, {0, 1, 2});
  const Vector shares = ped_anova(test.study, {.objective = 0});
  ASSERT_EQ(plot.bars.size(), 3u);
  double last = kInfinity;
  for (const plot::Bar& bar : plot.bars) {
    EXPECT_EQ(bar.value, shares[*test.study.space().find(bar.label)]);
    EXPECT_LE(bar.value, last);
    last = bar.value;
  }
}

TEST(ParetoPlot, MarksTheStudysFront) {
  TestStudy test(settings(one_number(), {{"loss", false}, {"accuracy", true}}));
  for (int64_t i = 0; i < 40; ++i) {
    Random random(2, i);
    const Point at = random_point(one_number(), random), other = random_point(one_number(), random);
    test.end(test.start(at), TrialState::kComplete, {at[0], -other[0]});
  }
  test.end(test.start({0}), TrialState::kComplete, {-1, std::nan("")});
  const plot::XyPlot plot = pareto_plot(test.study, 0, 1);
  std::set<std::pair<double, double>> front, expected;
  const plot::Points& marked = *find(plot, "Pareto front");
  for (size_t i = 0; i < marked.x.size(); ++i) front.insert({marked.x[i], marked.y[i]});
  for (const int64_t number : test.study.pareto_front()) {
    const Vector& losses = test.study.trials()[static_cast<size_t>(number)].losses;
    if (std::isfinite(losses[1])) expected.insert({losses[0], -losses[1]});
  }
  EXPECT_GT(front.size(), 2u);
  EXPECT_EQ(front, expected);
  EXPECT_EQ(find(plot, "dominated")->x.size(), 40 - front.size());
  // Every point is on the worse side of the line: right of it, or below.
  ASSERT_EQ(plot.series.size(), 1u);
  const plot::Series& border = plot.series[0];
  EXPECT_EQ(border.x.size(), 2 * front.size() - 1);
  for (size_t i = 1; i < border.x.size(); ++i) {
    EXPECT_GE(border.x[i], border.x[i - 1]);
    EXPECT_GE(border.y[i], border.y[i - 1]);
  }
}

TEST(ParetoPlot, HasEachPairOfSeveralMetrics) {
  TestStudy test(settings(one_number(), {{"a", false}, {"b", false}, {"c", true}}));
  test.end(test.start({0}), TrialState::kComplete, {1, 2, 3});
  const auto plots = study_plots(test.study, kind("pareto"), {});
  EXPECT_EQ(plots.size(), 3u);
  EXPECT_TRUE(std::get<plot::XyPlot>(plots[0]).series.empty());
  EXPECT_EQ(study_plots(test.study, kind("pareto"), {.objectives = {0, 2}}).size(), 1u);
}

TEST(StudyPlots, ReportWhyThereAreNone) {
  TestStudy none(conditional(), 1, 0), one = completed({1, 2}), two(conditional(), 2, 0);
  for (const PlotKind& each : plot_kinds()) {
    EXPECT_FALSE(why_not(none.study, each, {}).empty()) << each.name;
  }
  EXPECT_EQ(refused(none.study, "history"), "history: no trial has a finite metric so far");
  EXPECT_EQ(refused(none.study, "slice"),
            "slice: no trial is complete with a finite metric so far");
  EXPECT_EQ(refused(one.study, "pareto"),
            "pareto: at least two metrics are required; this study has one");
  EXPECT_EQ(refused(one.study, "contour"),
            "contour: at least two parameters are required; this study has one");
  EXPECT_EQ(refused(one.study, "intermediate"),
            "intermediate: no trial has reported intermediate values");
  EXPECT_EQ(refused(conditional_study().study, "contour", {.parameters = {1}}),
            "contour: at least two parameters are required, got one");
  two.end(two.start({0.1, 0, kInactive, 0}), TrialState::kComplete, {1, 2});
  EXPECT_EQ(refused(two.study, "pareto", {.objectives = {1}}),
            "pareto: at least two metrics are required, got one");
  EXPECT_EQ(refused(two.study, "intermediate", {.objectives = {1}}),
            "intermediate: trials report only loss");
  EXPECT_EQ(refused(two.study, "importance"),
            "importance: at least two complete trials are required");
  EXPECT_EQ(refused(two.study, "contour", {.parameters = {1, 2}}),
            "contour: no complete trial has two of these parameters; choose others with "
            "--parameters");
}

TEST(StudyPage, PlacesPlotsOfEqualSizeSideBySide) {
  const TestStudy test = conditional_study();
  const plot::Page page = study_page(
      test.study, {&kind("history"), &kind("importance"), &kind("parallel"), &kind("slice")}, {});
  ASSERT_EQ(page.rows.size(), 3u);
  EXPECT_EQ(page.rows[0].plots.size(), 2u);
  EXPECT_EQ(page.rows[1].plots.size(), 1u);
  EXPECT_EQ(page.rows[2].plots.size(), 3u);
  EXPECT_EQ(study_page(test.study, {&kind("history")}, {}).rows[0].columns, 1u);
  EXPECT_FALSE(to_svg(page).empty());
}

}  // namespace
}  // namespace gallop::tune

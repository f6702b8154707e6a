#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/train/metrics/confusion.h"
#include "gallop/train/metrics/residuals.h"
#include "gallop/train/reports/figure.h"
#include "gallop/train/tasks/task_defaults.h"
#include "unit/plot/well_formed.h"
#include "unit/train/metric_cases.h"

namespace gallop::train {
namespace {

using Target = MetricTask::Target;
using Json = nlohmann::ordered_json;

Metrics report_metrics_of(const MetricTask& task) {
  return report_metrics(default_report(task.target, task.per_element), task);
}

std::vector<FigureData> figures_of(const Metrics& metrics, const Predictions& all) {
  MetricSums sums({}, metrics);
  sums.add(all);
  return sums.figures();
}

template <typename T>
const T& only(const std::vector<FigureData>& figures, const std::string& name) {
  for (const FigureData& one : figures) {
    if (one.name == name) return std::get<T>(one.data);
  }
  throw InternalError("there is no figure " + name);
}

std::vector<int64_t> counts_of(const std::vector<double>& shares, int64_t all) {
  std::vector<int64_t> counts;
  for (const double share : shares) {
    counts.push_back(std::llround(share * static_cast<double>(all)));
  }
  return counts;
}

double area_below(const ThresholdCurve& curve) {
  double area = 0;
  for (size_t i = 1; i < curve.x.size(); ++i) {
    area += (curve.x[i] - curve.x[i - 1]) * (curve.y[i] + curve.y[i - 1]) / 2;
  }
  return area;
}

// `wanted`: counts of negatives and of positives at or above every threshold.
void expect_roc(const ThresholdCurve& curve, const nlohmann::json& wanted) {
  ASSERT_EQ(curve.x.empty(), wanted.is_null());
  if (curve.x.empty()) return;
  std::vector<std::pair<int64_t, int64_t>> all;
  for (size_t i = 0; i < wanted[0].size(); ++i) all.emplace_back(wanted[0][i], wanted[1][i]);
  const auto x = counts_of(curve.x, curve.negatives), y = counts_of(curve.y, curve.positives);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NE(std::find(all.begin(), all.end(), std::pair(x[i], y[i])), all.end()) << i;
  }
  EXPECT_EQ(std::pair(x.front(), y.front()), all.front());
  EXPECT_EQ(std::pair(x.back(), y.back()), all.back());
  EXPECT_TRUE(std::is_sorted(curve.thresholds.rbegin(), curve.thresholds.rend()));
  EXPECT_NEAR(area_below(curve), *curve.area, 1e-12);
}

// `wanted`: counts of positives at or above each threshold, and precisions.
void expect_precision_recall(const ThresholdCurve& curve, const nlohmann::json& wanted) {
  ASSERT_EQ(curve.x.empty(), wanted.is_null());
  if (curve.x.empty()) return;
  EXPECT_EQ(counts_of(curve.x, curve.positives), wanted[0].get<std::vector<int64_t>>());
  const auto precisions = wanted[1].get<std::vector<double>>();
  ASSERT_EQ(curve.y.size(), precisions.size());
  double area = 0;
  for (size_t i = 0; i < precisions.size(); ++i) {
    EXPECT_NEAR(curve.y[i], precisions[i], 1e-12) << i;
    if (i > 0) area += (curve.x[i] - curve.x[i - 1]) * curve.y[i];
  }
  EXPECT_NEAR(area, *curve.area, 1e-12);
}

void expect_reliability(const ReliabilityDiagram& diagram, const nlohmann::json& wanted) {
  size_t next = 0;
  for (const auto& bin : diagram.bins) {
    if (bin.count == 0) continue;
    ASSERT_LT(next, wanted[0].size());
    EXPECT_NEAR(bin.accuracy, wanted[0][next].get<double>(), 1e-12);
    EXPECT_NEAR(bin.confidence, wanted[1][next].get<double>(), 1e-7);  // A mean of fp32.
    next += 1;
  }
  EXPECT_EQ(next, wanted[0].size());
}

TEST(Figures, EqualScikitLearn) {
  for (const MetricCase& tested : metric_cases()) {
    SCOPED_TRACE(tested.name);
    // Several alignments of sequences may have the fewest edits.
    if (tested.task.target == MetricTask::Target::kSequences) continue;
    const auto figures = figures_of(report_metrics_of(tested.task), tested.all);
    ASSERT_EQ(figures.size(), tested.figures.size());
    for (const auto& [name, wanted] : tested.figures.items()) {
      SCOPED_TRACE(name);
      if (name == "confusion-matrix") {
        const auto& matrix = only<ConfusionMatrix>(figures, name);
        EXPECT_EQ(matrix.counts, wanted.get<std::vector<std::vector<int64_t>>>());
        EXPECT_EQ(matrix.classes.size(), matrix.counts.size());
      } else if (name == "roc-curve") {
        const auto& curves = only<RocCurves>(figures, name).curves;
        ASSERT_EQ(curves.size(), wanted.size());
        for (size_t i = 0; i < curves.size(); ++i) expect_roc(curves[i], wanted[i]);
      } else if (name == "precision-recall") {
        const auto& curves = only<PrecisionRecallCurves>(figures, name).curves;
        ASSERT_EQ(curves.size(), wanted.size());
        for (size_t i = 0; i < curves.size(); ++i) expect_precision_recall(curves[i], wanted[i]);
      } else if (name == "reliability") {
        expect_reliability(only<ReliabilityDiagram>(figures, name), wanted);
      } else if (name == "confusion-by-label") {
        std::vector<std::vector<int64_t>> counts;
        for (const auto& one : only<LabelConfusions>(figures, name).labels) {
          counts.push_back(
              {one.true_negatives, one.false_positives, one.false_negatives, one.true_positives});
        }
        EXPECT_EQ(counts, wanted.get<std::vector<std::vector<int64_t>>>());
      } else {
        const auto& residuals = only<Residuals>(figures, name);
        ASSERT_EQ(residuals.shown.size(), wanted.size());
        for (size_t i = 0; i < wanted.size(); ++i) {
          if (wanted[i].is_null()) continue;
          EXPECT_EQ(residuals.shown[i].counts, wanted[i].get<std::vector<int64_t>>());
        }
      }
    }
  }
}

std::string text_of(const std::vector<FigureData>& figures) {
  Json all = Json::array();
  for (const FigureData& one : figures) all.push_back({one.name, figure_json(one)});
  return all.dump();
}

// Distributes samples randomly over states, which are merged in random order.
std::vector<FigureData> partitioned_figures(const Metrics& metrics, const Predictions& all,
                                            int64_t most_rows, std::mt19937& random) {
  std::vector<FigureData> figures;
  for (const auto& metric : metrics) {
    std::vector<std::unique_ptr<MetricState>> states;
    const size_t count = 1 + random() % 4;
    while (states.size() < count) states.push_back(metric->make_state());
    for (int64_t begin = 0, end = 0; begin < all.target.size(0); begin = end) {
      end = std::min<int64_t>(all.target.size(0), begin + 1 + random() % most_rows);
      states[random() % states.size()]->add(part_of(all, begin, end));
    }
    std::shuffle(states.begin(), states.end(), random);
    const auto merged = metric->make_state();
    for (const auto& state : states) {
      const auto sent = metric->make_state();
      sent->from_bytes(state->to_bytes());
      merged->merge(*sent);
    }
    for (FigureData& one : metric->figures(*merged)) figures.push_back(std::move(one));
  }
  return figures;
}

TEST(Figures, AnyPartitionGivesTheSameData) {
  std::mt19937 random(7);
  for (const MetricCase& tested : metric_cases()) {
    SCOPED_TRACE(tested.name);
    const Metrics metrics = report_metrics_of(tested.task);
    const std::string whole = text_of(figures_of(metrics, tested.all));
    for (int repeat = 0; repeat < 4; ++repeat) {
      EXPECT_EQ(text_of(partitioned_figures(metrics, tested.all, 9, random)), whole);
    }
  }
}

TEST(Figures, AreDrawnAsWellFormedSvgAndAsText) {
  for (MetricCase& tested : metric_cases()) {
    SCOPED_TRACE(tested.name);
    tested.task.class_names = {"<cat> & \"dog\"", std::string(200, 'n')};
    for (const FigureData& one : figures_of(report_metrics_of(tested.task), tested.all)) {
      const plot::Page page = figure_page(one);
      EXPECT_EQ(page.title, figure_title(one));
      const std::string svg = plot::to_svg(page);
      EXPECT_TRUE(plot::is_well_formed(svg)) << svg;
      EXPECT_EQ(svg.find("nan"), std::string::npos) << one.name;
      for (const plot::Row& row : page.rows) {
        for (const plot::Plot& drawn : row.plots) EXPECT_FALSE(plot::to_text(drawn, {}).empty());
      }
    }
  }
}

TEST(Figures, OfNothingAreDrawnToo) {
  for (const Target target :
       {Target::kClasses, Target::kTokens, Target::kBinary, Target::kLabels, Target::kPairs}) {
    const MetricTask task{.target = target, .classes = target == Target::kBinary ? 2 : 3};
    for (const FigureData& one : MetricSums({}, report_metrics_of(task)).figures()) {
      EXPECT_TRUE(plot::is_well_formed(plot::to_svg(figure_page(one)))) << one.name;
      EXPECT_TRUE(figure_json(one).is_object());
    }
  }
}

TEST(Figures, OfOneLabelHaveItsName) {
  const MetricTask task{.target = Target::kLabels, .classes = 1, .class_names = {"smiles"}};
  const Predictions all{.outputs = at::randn({6, 1}),
                        .target = at::tensor({0.0F, 1.0F, 1.0F, 0.0F, 1.0F, 0.0F}).unsqueeze(1)};
  for (const FigureData& one : figures_of(report_metrics_of(task), all)) {
    if (one.name == "reliability") continue;  // It is about all labels together.
    EXPECT_NE(figure_json(one).dump().find("smiles"), std::string::npos) << one.name;
  }
}

TEST(Figures, OfLabelsLeaveOutIgnoredTargets) {
  const MetricTask task{.target = Target::kLabels, .classes = 2, .class_names = {"cat", "dog"}};
  const Predictions all{.outputs = at::tensor({3.F, -3.F, 3.F, 3.F, -3.F, 3.F}).view({3, 2}),
                        .target = at::tensor({1.F, 0.F, 0.F, -100.F, -100.F, 1.F}).view({3, 2})};
  const auto figures = figures_of(report_metrics_of(task), all);
  Json cat = {{"label", "cat"},
              {"true_positives", 1},
              {"false_positives", 1},
              {"false_negatives", 0},
              {"true_negatives", 0}};
  Json dog = {{"label", "dog"},
              {"true_positives", 1},
              {"false_positives", 0},
              {"false_negatives", 0},
              {"true_negatives", 1}};
  for (const FigureData& one : figures) {
    if (one.name == "confusion-by-label") {
      EXPECT_EQ(figure_json(one), (Json{{"threshold", 0.5}, {"labels", {cat, dog}}}));
    }
  }
  int64_t predictions = 0;
  for (const auto& bin : only<ReliabilityDiagram>(figures, "reliability").bins) {
    predictions += bin.count;
  }
  EXPECT_EQ(predictions, 4);
}

TEST(Figures, OfManyLabelsShowThoseWithTheMostErrors) {
  LabelConfusions all;
  for (int64_t i = 0; i < 31; ++i) {
    all.labels.push_back({.name = "label " + std::to_string(i), .false_negatives = 30 - i});
  }
  const plot::Page page = figure_page({"confusion-by-label", all});
  EXPECT_EQ(page.title, "Confusion matrix of each label: 30 of 31 with the most errors");
  const std::string svg = plot::to_svg(page);
  EXPECT_NE(svg.find("label 29"), std::string::npos);
  EXPECT_EQ(svg.find("label 30"), std::string::npos);
}

// Embeddings of a circle: pairs of the same angle, except for one of opposite ones.
TEST(Figures, OfPairsAreRecallsAndSimilarities) {
  constexpr int64_t kPairs = 12;
  const at::Tensor outputs = at::zeros({kPairs, 2, 2});
  for (int64_t i = 0; i < kPairs; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / kPairs;
    outputs[i][0] = at::tensor({std::cos(angle), std::sin(angle)}, at::kFloat);
    outputs[i][1] = i == 0 ? outputs[i][0].neg() : outputs[i][0].mul(3);
  }
  const MetricTask task{.target = Target::kPairs};
  const Predictions all{.outputs = outputs, .target = at::ones({kPairs})};
  const auto figures = figures_of(report_metrics_of(task), all);
  const auto& recall = only<RecallCurve>(figures, "recall-at-k");
  EXPECT_EQ(recall.pairs, kPairs);
  EXPECT_EQ(recall.k, (std::vector<int64_t>{1, 2, 5, 10}));
  for (const int64_t k : recall.k) {
    const auto metric = metric_of("recall-at-k k=" + std::to_string(k), task);
    const auto state = metric->make_state();
    state->add(all);
    const auto at = std::find(recall.k.begin(), recall.k.end(), k) - recall.k.begin();
    EXPECT_EQ(metric->values(*state).front().value, recall.recalls[static_cast<size_t>(at)]) << k;
  }
  const auto& histogram = only<SimilarityHistogram>(figures, "similarities");
  ASSERT_EQ(histogram.edges.size(), histogram.matching.size() + 1);
  ASSERT_EQ(histogram.others.size(), histogram.matching.size());
  EXPECT_EQ(histogram.edges.front(), -1);
  EXPECT_EQ(histogram.edges.back(), 1);
  EXPECT_LE(histogram.matching.size(), 40U);
  EXPECT_EQ(histogram.matching.front(), 1);
  EXPECT_EQ(histogram.matching.back(), kPairs - 1);
  EXPECT_EQ(std::accumulate(histogram.others.begin(), histogram.others.end(), int64_t{0}),
            kPairs * (kPairs - 1));
  for (const FigureData& one : figures) {
    const std::string svg = plot::to_svg(figure_page(one));
    EXPECT_TRUE(plot::is_well_formed(svg)) << one.name;
    EXPECT_EQ(svg.find("nan"), std::string::npos) << one.name;
  }
  std::mt19937 random(7);
  EXPECT_EQ(text_of(partitioned_figures(report_metrics_of(task), all, 5, random)),
            text_of(figures));
}

TEST(Figures, OfPairsThatDoNotMatchCountAsOthers) {
  const at::Tensor outputs = at::tensor({1., 0., 1., 0., 0., 1., 0., -1.}).view({2, 2, 2});
  const Predictions all{.outputs = outputs, .target = at::tensor({1., -1.})};
  const auto figures = figures_of(report_metrics_of({.target = Target::kPairs}), all);
  const auto& recall = only<RecallCurve>(figures, "recall-at-k");
  EXPECT_EQ(recall.pairs, 1);
  EXPECT_EQ(recall.recalls, (std::vector<double>{1}));
  const auto& histogram = only<SimilarityHistogram>(figures, "similarities");
  EXPECT_EQ(std::accumulate(histogram.matching.begin(), histogram.matching.end(), int64_t{0}), 1);
  EXPECT_EQ(std::accumulate(histogram.others.begin(), histogram.others.end(), int64_t{0}), 3);
  EXPECT_EQ(histogram.others.front(), 1);
}

TEST(Figures, OfEmbeddingsThatAreNoNumbersAreEmpty) {
  const MetricTask task{.target = Target::kPairs};
  const Predictions all{.outputs = at::full({3, 2, 4}, std::nan("")), .target = at::ones({3})};
  for (const FigureData& one : figures_of(report_metrics_of(task), all)) {
    EXPECT_TRUE(plot::is_well_formed(plot::to_svg(figure_page(one)))) << one.name;
    EXPECT_EQ(figure_json(one).dump().find("nan"), std::string::npos) << one.name;
  }
}

TEST(Figures, OfAReportFollowFromTheTargets) {
  const auto names = [](const MetricTask& task) {
    std::vector<std::string> all;
    for (const auto& metric : report_metrics_of(task)) all.push_back(metric->name());
    return all;
  };
  using Names = std::vector<std::string>;
  const Names all = {"confusion-matrix", "roc-auc", "average-precision",
                     "expected-calibration-error"};
  EXPECT_EQ(names({.classes = 20}), all);
  EXPECT_EQ(names({.classes = 21}), (Names{"confusion-matrix", "expected-calibration-error"}));
  EXPECT_EQ(names({.classes = 1001}), Names{"expected-calibration-error"});
  EXPECT_EQ(names({.target = Target::kBinary, .classes = 2}), all);
  EXPECT_EQ(names({.target = Target::kTokens, .classes = 9}), Names{"expected-calibration-error"});
  EXPECT_EQ(names({.target = Target::kLabels, .classes = 9}), all);
  EXPECT_EQ(names({.target = Target::kPairs}), Names{"pairs"});
  EXPECT_EQ(names({.target = Target::kNumbers}), Names{"residuals"});
}

TEST(Figures, OfClassCountsAreTheMetricOfEachClass) {
  // Class 0: two of three pixels are correct, one false positive; class 2 does not occur.
  const MetricTask task{.classes = 3, .class_names = {"road", "sky"}};
  const auto metric = std::shared_ptr<const Metric>(metric_of("mean-iou", task));
  const Predictions all{.outputs = at::zeros({1, 2, 2, 3}),
                        .target = at::zeros({1, 2, 2}, at::kLong)};
  const int64_t truths[] = {0, 0, 0, 1}, guesses[] = {0, 0, 1, 0};
  for (int64_t i = 0; i < 4; ++i) {
    all.target[0][i / 2][i % 2] = truths[i];
    all.outputs[0][i / 2][i % 2][guesses[i]] = 5;
  }
  const auto figures = figures_of({metric}, all);
  const auto& bars = only<ClassBars>(figures, "mean-iou-by-class");
  EXPECT_EQ(bars.metric, "IoU");
  EXPECT_EQ(bars.classes, (std::vector<std::string>{"road", "sky", "class-2"}));
  EXPECT_EQ(bars.values, (std::vector<std::optional<double>>{0.5, 0.0, std::nullopt}));
  const std::string svg = plot::to_svg(figure_page(figures.front()));
  EXPECT_TRUE(plot::is_well_formed(svg));
  EXPECT_NE(svg.find(">0.5000</text>"), std::string::npos);
  EXPECT_EQ(figure_json(figures.front()).at("values"), (Json{0.5, 0.0, nullptr}));
}

TEST(Figures, HaveEachNameOnce) {
  const MetricTask task{.classes = 3};
  const Metrics metrics = {metric_of("f1", task), metric_of("f1 average=micro", task),
                           metric_of("expected-calibration-error bins=4", task),
                           metric_of("accuracy", task), metric_of("mcc", task)};
  std::vector<std::string> names;
  for (const FigureData& one : MetricSums({}, metrics).figures()) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"f1-by-class", "reliability-4"}));
}

TEST(ConfusionMatrix, HasSharesOfRows) {
  const ConfusionMatrix matrix{.classes = {"a", "b", "c"},
                               .counts = {{3, 1, 0}, {0, 0, 0}, {1, 0, 1}}};
  const auto shares = matrix.shares();
  EXPECT_EQ(shares[0], (std::vector<double>{0.75, 0.25, 0}));
  EXPECT_TRUE(std::isnan(shares[1][0]));
  EXPECT_EQ(shares[2], (std::vector<double>{0.5, 0, 0.5}));
}

TEST(ConfusionMatrix, OfManyClassesIsDrawnAsItsMostFrequentConfusions) {
  ConfusionMatrix matrix;
  for (int i = 0; i < 101; ++i) {
    matrix.classes.push_back("c" + std::to_string(i));
    matrix.counts.emplace_back(101, 0);
  }
  matrix.counts[3][4] = 12;
  matrix.counts[5][6] = 7;
  matrix.counts[8][8] = 99;
  const auto page = figure_page({"confusion-matrix", matrix});
  const auto& bars = std::get<plot::BarPlot>(page.rows.at(0).plots.at(0)).bars;
  ASSERT_EQ(bars.size(), 2U);
  EXPECT_EQ(bars[0].label, "c3 predicted as c4");
  EXPECT_EQ(bars[1].text, "7");
}

TEST(ThresholdCurves, OfManyScoresHaveFewPointsOfTheSameShape) {
  const MetricTask task{.target = Target::kBinary, .classes = 2};
  constexpr int64_t kRows = 60'000;
  const at::Tensor outputs = at::randn({kRows});
  const at::Tensor target = outputs.add(at::randn({kRows})).gt(0).to(at::kLong);
  const auto figures = figures_of(report_metrics_of(task), {.outputs = outputs, .target = target});
  const auto& roc = only<RocCurves>(figures, "roc-curve").curves.at(0);
  EXPECT_LE(roc.x.size(), 2001U);
  EXPECT_GT(roc.x.size(), 500U);
  EXPECT_NEAR(area_below(roc), *roc.area, 1e-3);
  const auto& precision_recall =
      only<PrecisionRecallCurves>(figures, "precision-recall").curves.at(0);
  EXPECT_LE(precision_recall.x.size(), 2000U);
  EXPECT_GT(precision_recall.x.size(), 500U);
  for (const auto* curve : {&roc, &precision_recall}) {
    EXPECT_TRUE(std::is_sorted(curve->x.begin(), curve->x.end()));
    EXPECT_EQ(curve->x.front(), 0);
    EXPECT_EQ(curve->x.back(), 1);
    EXPECT_TRUE(std::isinf(curve->thresholds.front()));
  }
}

TEST(Residuals, HaveTheNamesOfTheirTargets) {
  const Residuals::Column column{
      .count = 1, .not_finite = 0, .pairs = {{1, 2, 1}}, .edges = {0, 1}, .counts = {1}};
  const FigureData one{"residuals", Residuals{.columns = 1, .shown = {column}}};
  EXPECT_EQ(figure_title(one, {.numbers = {"price"}}), "Residuals of price");
  EXPECT_EQ(figure_title(one), "Residuals");
  const FigureData two{"residuals", Residuals{.columns = 2, .shown = {column, column}}};
  EXPECT_EQ(figure_title(two, {.numbers = {"price", "rent"}}), "Residuals");
  const auto page = figure_page(two, {.numbers = {"price", "rent"}});
  EXPECT_EQ(std::get<plot::XyPlot>(page.rows[1].plots[0]).title, "Predicted against actual, rent");
  const auto unnamed = figure_page(two);
  EXPECT_EQ(std::get<plot::XyPlot>(unnamed.rows[1].plots[1]).title, "Residuals, target 1");
}

TEST(ThresholdCurves, OfManyClassesAreDrawnFromTheLeastArea) {
  RocCurves roc;
  for (int i = 0; i < 40; ++i) {
    roc.curves.push_back({.class_name = "c" + std::to_string(i), .area = 1 - i / 100.0});
  }
  const FigureData figure{"roc-curve", roc};
  EXPECT_EQ(figure_title(figure),
            "ROC curves, each class against the others: 30 of 40 with the least area");
  EXPECT_EQ(figure_title(figure, {.are_labels = true}),
            "ROC curve of each label: 30 of 40 with the least area");
  const auto page = figure_page(figure);
  EXPECT_EQ(page.rows.size(), 10U);
  EXPECT_EQ(std::get<plot::XyPlot>(page.rows[0].plots[0]).title, "c39, AUC 0.6100");
  EXPECT_EQ(figure_json(figure).at("curves").size(), 40U);
}

TEST(ThresholdCurves, OfScoresThatAreNoNumbersHaveNoPoints) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto figures =
      figures_of(report_metrics_of({.classes = 3}),
                 {.outputs = at::full({4, 3}, nan), .target = at::zeros({4}, at::kLong)});
  for (const auto& curve : only<RocCurves>(figures, "roc-curve").curves) {
    EXPECT_TRUE(curve.x.empty());
    EXPECT_FALSE(curve.area);
  }
}

TEST(PairSample, KeepsAllDistinctPairsWithTheirCounts) {
  PairSample sample;
  const at::Tensor outputs = at::zeros({6, 1}), target = at::zeros({6, 1});
  const double predicted[] = {1, 1, 2, -0.0, 0.0, std::numeric_limits<double>::infinity()};
  for (int64_t i = 0; i < 6; ++i) {
    outputs[i][0] = predicted[i];
    target[i][0] = i == 2 ? 5 : 3;
  }
  sample.add({.outputs = outputs, .target = target});
  const Residuals residuals = sample.residuals();
  EXPECT_EQ(residuals.columns, 1);
  const auto& column = residuals.shown.at(0);
  EXPECT_EQ(column.count, 5);
  EXPECT_EQ(column.not_finite, 1);
  ASSERT_EQ(column.pairs.size(), 3U);
  for (const auto& pair : column.pairs) {
    EXPECT_EQ(pair.count, pair.predicted == 2 ? 1 : 2);
    EXPECT_EQ(pair.actual, pair.predicted == 2 ? 5 : 3);
  }
  // Residuals are 2, 2, 3, 3 and 3.
  EXPECT_EQ(column.edges.front(), 2);
  EXPECT_EQ(column.edges.back(), 3);
  EXPECT_EQ(column.counts.front(), 2);
  EXPECT_EQ(column.counts.back(), 3);
}

TEST(PairSample, OfManyPairsIsTheSameForAnyPartition) {
  constexpr int64_t kRows = 25'000;
  // The second column contains every value twice.
  const at::Tensor order = at::randperm(kRows, at::kLong);
  const at::Tensor outputs = at::stack({order, order.remainder(kRows / 2)}, 1).to(at::kDouble);
  const Predictions all{.outputs = outputs, .target = outputs.mul(2)};
  const Metrics metrics = report_metrics_of({.target = Target::kNumbers});
  const auto whole = figures_of(metrics, all);
  const auto& shown = only<Residuals>(whole, "residuals").shown;
  ASSERT_EQ(shown.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(shown[i].count, kRows);
    ASSERT_EQ(shown[i].pairs.size(), PairSample::kMostPairs);
    for (const auto& pair : shown[i].pairs) {
      ASSERT_EQ(pair.count, i == 0 ? 1 : 2);
      ASSERT_EQ(pair.actual, 2 * pair.predicted);
    }
    const auto& counts = shown[i].counts;
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}),
              static_cast<int64_t>(PairSample::kMostPairs) * (i == 0 ? 1 : 2));
  }
  std::mt19937 random(3);
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_EQ(text_of(partitioned_figures(metrics, all, 4000, random)), text_of(whole));
  }
}

TEST(PairSample, ShowsTheFirstColumnsOfMany) {
  const Metrics metrics = report_metrics_of({.target = Target::kNumbers});
  const auto figures =
      figures_of(metrics, {.outputs = at::zeros({3, 40}), .target = at::full({3, 40}, 2.0)});
  const auto& residuals = only<Residuals>(figures, "residuals");
  EXPECT_EQ(residuals.columns, 40);
  EXPECT_EQ(residuals.shown.size(), PairSample::kMostColumns);
  PairSample sample;
  sample.add({.outputs = at::zeros({3, 2}), .target = at::zeros({3, 2})});
  EXPECT_THROW(sample.add({.outputs = at::zeros({3, 3}), .target = at::zeros({3, 3})}),
               InternalError);
}

}  // namespace
}  // namespace gallop::train

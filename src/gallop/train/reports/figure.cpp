#include "gallop/train/reports/figure.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/train/reports/confusions.h"

namespace gallop::train {

namespace {

using plot::Page;
using plot::Weight;
using plot::XyPlot;

constexpr size_t kMostDrawnClasses = 100;  // In a confusion matrix.
constexpr size_t kMostCountsInCells = 30;  // With up to this many classes, cells show their counts.
constexpr size_t kMostConfusionBars = 25;  // Instead of a larger matrix.
constexpr size_t kMostDrawnPairs = 2000;   // In a residual plot.
constexpr size_t kMostDrawnCurves = 30;
constexpr size_t kMostDrawnLabels = 30;
constexpr size_t kPlotsInRow = 3;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

plot::Axis unit_axis(const char* label) {
  plot::Axis axis{.label = label};
  axis.min = 0.;
  axis.max = 1.;
  return axis;
}

plot::Series faint_line(const char* name, std::vector<double> x, std::vector<double> y) {
  return {.name = name, .x = std::move(x), .y = std::move(y), .weight = Weight::kFaint};
}

// Arranges plots in rows of at most three.
Page in_rows(std::vector<plot::Plot> plots) {
  Page page;
  const size_t columns = std::min(plots.size(), kPlotsInRow);
  for (size_t i = 0; i < plots.size(); ++i) {
    if (i % kPlotsInRow == 0) page.rows.push_back({.plots = {}, .columns = columns});
    page.rows.back().plots.push_back(std::move(plots[i]));
  }
  return page;
}

plot::HeatMap heat_map_of(const ConfusionMatrix& matrix) {
  plot::HeatMap map{.title = "Share of each true class",
                    .row_label = "true class",
                    .column_label = "predicted class",
                    .rows = matrix.classes,
                    .columns = matrix.classes,
                    .values = {},
                    .color = {.label = "fraction", .min = 0., .max = 1.}};
  const auto shares = matrix.shares();
  for (size_t truth = 0; truth < matrix.counts.size(); ++truth) {
    for (size_t guess = 0; guess < matrix.counts.size(); ++guess) {
      const int64_t count = matrix.counts[truth][guess];
      const double share = shares[truth][guess];
      map.values.push_back(count > 0 ? share : std::numeric_limits<double>::quiet_NaN());
      map.texts.push_back(format_count(count));
      map.labels.push_back(count == 0 ? ""
                                      : fmt::format("{} predicted as {}: {}, {}",
                                                    matrix.classes[truth], matrix.classes[guess],
                                                    format_count(count), percent(share)));
    }
  }
  if (matrix.classes.size() > kMostCountsInCells) map.texts.clear();
  return map;
}

plot::BarPlot confusions_of(const ConfusionMatrix& matrix) {
  plot::BarPlot bars{.title = "Most frequent confusions", .bars = {}};
  for (const Confusion& one : most_frequent_confusions(matrix.counts, kMostConfusionBars)) {
    bars.bars.push_back({.label = fmt::format("{} predicted as {}", matrix.classes[one.truth],
                                              matrix.classes[one.guess]),
                         .value = static_cast<double>(one.count),
                         .text = format_count(one.count)});
  }
  return bars;
}

plot::HeatMap heat_map_of(const LabelConfusions::Label& label) {
  const std::vector<std::string> names = {"absent", "present"};
  plot::HeatMap map{.title = label.name,
                    .row_label = "true",
                    .column_label = "predicted",
                    .rows = names,
                    .columns = names,
                    .values = {},
                    .color = {.label = "fraction", .min = 0., .max = 1.}};
  const ConfusionMatrix matrix{.classes = names,
                               .counts = {{label.true_negatives, label.false_positives},
                                          {label.false_negatives, label.true_positives}}};
  const char* const kinds[] = {"true negatives", "false positives", "false negatives",
                               "true positives"};
  const auto shares = matrix.shares();
  for (size_t i = 0; i < std::size(kinds); ++i) {
    const int64_t count = matrix.counts[i / 2][i % 2];
    map.values.push_back(shares[i / 2][i % 2]);
    map.texts.push_back(format_count(count));
    map.labels.push_back(fmt::format("{}: {}", kinds[i], format_count(count)));
  }
  return map;
}

// Shows the labels with the most errors if there are very many.
Page page_of(const LabelConfusions& confusions) {
  auto labels = confusions.labels;
  if (labels.size() > kMostDrawnLabels) {
    std::stable_sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) {
      return a.false_positives + a.false_negatives > b.false_positives + b.false_negatives;
    });
    labels.resize(kMostDrawnLabels);
  }
  std::vector<plot::Plot> plots;
  for (const auto& label : labels) plots.emplace_back(heat_map_of(label));
  return in_rows(std::move(plots));
}

Page page_of(const RecallCurve& recall) {
  XyPlot plot{.title = {},
              .x = {.label = "k", .scale = plot::Scale::kLog, .min = 1., .max = 10.},
              .y = unit_axis("recall at k"),
              .series = {}};
  const std::vector<double> k(recall.k.begin(), recall.k.end());
  std::vector<double> chance;
  for (const double one : k) chance.push_back(one / static_cast<double>(recall.pairs));
  if (!k.empty()) plot.x.max = std::max(10., k.back());
  plot.points.push_back({.name = "k = 1, 2, 5, ...", .x = k, .y = recall.recalls});
  plot.series.push_back({.name = "recall", .x = k, .y = recall.recalls});
  plot.series.push_back(faint_line("chance", k, std::move(chance)));
  return in_rows({std::move(plot)});
}

std::vector<double> fractions_of(const std::vector<int64_t>& counts) {
  const auto sum = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::vector<double> fractions;
  for (const int64_t count : counts) {
    fractions.push_back(sum > 0 ? static_cast<double>(count) / sum : 0);
  }
  return fractions;
}

Page page_of(const SimilarityHistogram& histogram) {
  XyPlot plot{.title = {},
              .x = {.label = "cosine similarity"},
              .y = {.label = "fraction of pairs", .min = 0.},
              .series = {}};
  if (!histogram.edges.empty()) {
    plot.series = {plot::steps_of("matching", histogram.edges, fractions_of(histogram.matching)),
                   plot::steps_of("not matching", histogram.edges, fractions_of(histogram.others))};
  }
  return in_rows({std::move(plot)});
}

// "cat, AUC 0.9812"
std::string title_of(const ThresholdCurve& curve, const char* area) {
  return curve.area ? fmt::format("{}, {} {:.4f}", curve.class_name, area, *curve.area)
                    : fmt::format("{}, {} undefined", curve.class_name, area);
}

XyPlot roc_plot(const ThresholdCurve& curve) {
  XyPlot plot{.title = title_of(curve, "AUC"),
              .x = unit_axis("false positive rate"),
              .y = unit_axis("true positive rate"),
              .series = {}};
  plot.series.push_back({.name = "ROC", .x = curve.x, .y = curve.y});
  plot.series.push_back(faint_line("chance", {0, 1}, {0, 1}));
  return plot;
}

// A step plot, so that the area below it is the average precision.
XyPlot precision_recall_plot(const ThresholdCurve& curve) {
  XyPlot plot{.title = title_of(curve, "AP"),
              .x = unit_axis("recall"),
              .y = unit_axis("precision"),
              .series = {}};
  auto& steps = plot.series.emplace_back();
  steps.name = "precision";
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if (i > 0) {
      steps.x.push_back(curve.x[i - 1]);
      steps.y.push_back(curve.y[i]);
    }
    steps.x.push_back(curve.x[i]);
    steps.y.push_back(curve.y[i]);
  }
  const auto all = static_cast<double>(curve.negatives + curve.positives);
  if (all > 0) {
    const double chance = static_cast<double>(curve.positives) / all;
    plot.series.push_back(faint_line("chance", {0, 1}, {chance, chance}));
  }
  return plot;
}

// Shows the curves with the smallest area if there are very many.
Page curves_page(std::vector<ThresholdCurve> curves, XyPlot (*plot_of)(const ThresholdCurve&)) {
  if (curves.size() > kMostDrawnCurves) {
    std::stable_sort(curves.begin(), curves.end(),
                     [](const ThresholdCurve& a, const ThresholdCurve& b) {
                       return a.area.value_or(2) < b.area.value_or(2);
                     });
    curves.resize(kMostDrawnCurves);
  }
  std::vector<plot::Plot> plots;
  for (const ThresholdCurve& curve : curves) plots.emplace_back(plot_of(curve));
  return in_rows(std::move(plots));
}

Page page_of(const ReliabilityDiagram& diagram) {
  std::vector<double> edges = {0}, accuracies, counts;
  plot::Points means{.name = "mean confidence", .x = {}, .y = {}, .shape = plot::Shape::kRing};
  for (const auto& bin : diagram.bins) {
    edges.push_back(static_cast<double>(edges.size()) / static_cast<double>(diagram.bins.size()));
    accuracies.push_back(bin.accuracy);
    counts.push_back(static_cast<double>(bin.count));
    if (bin.count == 0) continue;
    means.x.push_back(bin.confidence);
    means.y.push_back(bin.accuracy);
  }
  XyPlot accuracy{.title = diagram.error
                               ? fmt::format("Expected calibration error {:.4f}", *diagram.error)
                               : "Expected calibration error undefined",
                  .x = unit_axis("confidence"),
                  .y = unit_axis("accuracy"),
                  .series = {}};
  accuracy.series.push_back(plot::steps_of("accuracy", edges, accuracies));
  accuracy.series.push_back(faint_line("calibrated", {0, 1}, {0, 1}));
  accuracy.points.push_back(std::move(means));
  XyPlot histogram{.title = "Predictions by confidence",
                   .x = unit_axis("confidence"),
                   .y = {.label = "predictions", .whole = true},
                   .series = {plot::steps_of("predictions", edges, counts)}};
  return {.title = {},
          .rows = {{.plots = {std::move(accuracy), std::move(histogram)}, .columns = 2}}};
}

// The first pairs are a random sample.
XyPlot scatter_of(const Residuals::Column& column) {
  plot::Points points{.name = "targets", .x = {}, .y = {}};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (size_t i = 0; i < std::min(column.pairs.size(), kMostDrawnPairs); ++i) {
    const auto& pair = column.pairs[i];
    points.x.push_back(pair.actual);
    points.y.push_back(pair.predicted);
    low = std::min({low, pair.actual, pair.predicted});
    high = std::max({high, pair.actual, pair.predicted});
  }
  XyPlot plot{.title = "Predicted against actual",
              .x = {.label = "actual"},
              .y = {.label = "predicted"},
              .series = {}};
  if (!points.x.empty()) plot.series.push_back(faint_line("exact", {low, high}, {low, high}));
  plot.points.push_back(std::move(points));
  return plot;
}

XyPlot histogram_of(const Residuals::Column& column) {
  const std::vector<double> counts(column.counts.begin(), column.counts.end());
  return {.title = "Residuals",
          .x = {.label = "actual - predicted"},
          .y = {.label = "targets", .whole = true},
          .series = {plot::steps_of("targets", column.edges, counts)}};
}

Page residuals_page(const Residuals& residuals, const TargetNames& names) {
  Page page;
  for (size_t i = 0; i < residuals.shown.size(); ++i) {
    XyPlot scatter = scatter_of(residuals.shown[i]), histogram = histogram_of(residuals.shown[i]);
    if (residuals.columns > 1) {
      const std::string name =
          i < names.numbers.size() ? names.numbers[i] : fmt::format("target {}", i);
      for (XyPlot* const one : {&scatter, &histogram}) one->title += ", " + name;
    }
    page.rows.push_back({.plots = {std::move(scatter), std::move(histogram)}, .columns = 2});
  }
  return page;
}

Page page_of(const Residuals& residuals) { return residuals_page(residuals, {}); }

Page page_of(const ConfusionMatrix& matrix) {
  if (matrix.classes.size() <= kMostDrawnClasses) return in_rows({heat_map_of(matrix)});
  return in_rows({confusions_of(matrix)});
}
Page page_of(const RocCurves& roc) { return curves_page(roc.curves, roc_plot); }
Page page_of(const PrecisionRecallCurves& precision_recall) {
  return curves_page(precision_recall.curves, precision_recall_plot);
}

Page page_of(const ClassBars& classes) {
  plot::BarPlot bars{.title = classes.metric, .bars = {}};
  for (size_t i = 0; i < classes.classes.size(); ++i) {
    const auto& value = classes.values[i];
    bars.bars.push_back({.label = classes.classes[i],
                         .value = value.value_or(0),
                         .text = value ? fmt::format("{:.4f}", *value) : "undefined"});
  }
  return in_rows({std::move(bars)});
}

std::string curves_title(const char* name, size_t curves, const TargetNames& names) {
  if (curves == 1) return fmt::format("{} curve", name);
  std::string title = names.are_labels
                          ? fmt::format("{} curve of each label", name)
                          : fmt::format("{} curves, each class against the others", name);
  if (curves <= kMostDrawnCurves) return title;
  return title + fmt::format(": {} of {} with the least area", kMostDrawnCurves, curves);
}

std::string title_of(const ConfusionMatrix& /*matrix*/, const TargetNames& /*names*/) {
  return "Confusion matrix";
}
std::string title_of(const RocCurves& roc, const TargetNames& names) {
  return curves_title("ROC", roc.curves.size(), names);
}
std::string title_of(const PrecisionRecallCurves& precision_recall, const TargetNames& names) {
  return curves_title("Precision-recall", precision_recall.curves.size(), names);
}
std::string title_of(const ReliabilityDiagram& /*diagram*/, const TargetNames& /*names*/) {
  return "Reliability diagram";
}
std::string title_of(const ClassBars& bars, const TargetNames& names) {
  return fmt::format("{} of each {}", bars.metric, names.are_labels ? "label" : "class");
}
std::string title_of(const LabelConfusions& confusions, const TargetNames& /*names*/) {
  const size_t labels = confusions.labels.size();
  if (labels <= kMostDrawnLabels) return "Confusion matrix of each label";
  return fmt::format("Confusion matrix of each label: {} of {} with the most errors",
                     kMostDrawnLabels, labels);
}
std::string title_of(const RecallCurve& recall, const TargetNames& /*names*/) {
  return fmt::format("Recall at k of {} pairs", format_count(recall.pairs));
}
std::string title_of(const SimilarityHistogram& /*histogram*/, const TargetNames& /*names*/) {
  return "Similarities of matching and not matching pairs";
}
std::string title_of(const Residuals& residuals, const TargetNames& names) {
  const bool has_one = residuals.columns == 1 && names.numbers.size() == 1;
  return has_one ? fmt::format("Residuals of {}", names.numbers.front()) : "Residuals";
}

}  // namespace

std::string figure_title(const FigureData& figure, const TargetNames& names) {
  return std::visit([&](const auto& data) { return title_of(data, names); }, figure.data);
}

plot::Page figure_page(const FigureData& figure, const TargetNames& names) {
  const auto* const residuals = std::get_if<Residuals>(&figure.data);
  Page page = residuals != nullptr
                  ? residuals_page(*residuals, names)
                  : std::visit([](const auto& data) { return page_of(data); }, figure.data);
  page.title = figure_title(figure, names);
  return page;
}

}  // namespace gallop::train

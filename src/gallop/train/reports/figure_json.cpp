#include <nlohmann/json.hpp>

#include "gallop/config/json_numbers.h"
#include "gallop/train/reports/figure.h"

namespace gallop::train {

namespace {

using Json = nlohmann::ordered_json;

Json value_json(const std::optional<double>& value) {
  return value ? config::number_json(*value) : Json();
}

Json json_of(const ConfusionMatrix& matrix) {
  Json shares = Json::array();
  for (const auto& row : matrix.shares()) shares.push_back(config::numbers_json(row));
  return {{"classes", matrix.classes}, {"counts", matrix.counts}, {"shares", std::move(shares)}};
}

// `area`, `x` and `y` are keys.
Json curves_json(const std::vector<ThresholdCurve>& curves, const char* area, const char* x,
                 const char* y) {
  Json list = Json::array();
  for (const ThresholdCurve& curve : curves) {
    list.push_back({{"class", curve.class_name},
                    {"negatives", curve.negatives},
                    {"positives", curve.positives},
                    {area, value_json(curve.area)},
                    {"thresholds", config::numbers_json(curve.thresholds)},
                    {x, config::numbers_json(curve.x)},
                    {y, config::numbers_json(curve.y)}});
  }
  return {{"curves", std::move(list)}};
}

Json json_of(const RocCurves& roc) {
  return curves_json(roc.curves, "auc", "false_positive_rates", "true_positive_rates");
}
Json json_of(const PrecisionRecallCurves& precision_recall) {
  return curves_json(precision_recall.curves, "average_precision", "recalls", "precisions");
}

Json json_of(const ReliabilityDiagram& diagram) {
  Json bins = Json::array();
  const auto count = static_cast<double>(diagram.bins.size());
  for (size_t i = 0; i < diagram.bins.size(); ++i) {
    const auto& bin = diagram.bins[i];
    const bool is_empty = bin.count == 0;
    bins.push_back({{"from", static_cast<double>(i) / count},
                    {"to", static_cast<double>(i + 1) / count},
                    {"count", bin.count},
                    {"correct", bin.correct},
                    {"confidence", is_empty ? Json() : Json(bin.confidence)},
                    {"accuracy", is_empty ? Json() : Json(bin.accuracy)}});
  }
  return {{"expected_calibration_error", value_json(diagram.error)}, {"bins", std::move(bins)}};
}

Json json_of(const ClassBars& bars) {
  Json values = Json::array();
  for (const auto& value : bars.values) values.push_back(value_json(value));
  return {{"metric", bars.metric}, {"classes", bars.classes}, {"values", std::move(values)}};
}

Json json_of(const Residuals& residuals) {
  Json columns = Json::array();
  for (const auto& column : residuals.shown) {
    std::vector<double> predicted, actual;
    std::vector<int64_t> counts;
    for (const auto& pair : column.pairs) {
      predicted.push_back(pair.predicted);
      actual.push_back(pair.actual);
      counts.push_back(pair.count);
    }
    columns.push_back({{"count", column.count},
                       {"not_finite", column.not_finite},
                       {"predicted", std::move(predicted)},
                       {"actual", std::move(actual)},
                       {"counts", std::move(counts)},
                       {"residual_edges", column.edges},
                       {"residual_counts", column.counts}});
  }
  return {{"columns", residuals.columns}, {"shown", std::move(columns)}};
}

Json json_of(const LabelConfusions& confusions) {
  Json labels = Json::array();
  for (const auto& one : confusions.labels) {
    labels.push_back({{"label", one.name},
                      {"true_positives", one.true_positives},
                      {"false_positives", one.false_positives},
                      {"false_negatives", one.false_negatives},
                      {"true_negatives", one.true_negatives}});
  }
  return {{"threshold", 0.5}, {"labels", std::move(labels)}};
}

Json json_of(const RecallCurve& recall) {
  return {{"pairs", recall.pairs}, {"k", recall.k}, {"recalls", recall.recalls}};
}

Json json_of(const SimilarityHistogram& histogram) {
  return {{"edges", histogram.edges},
          {"matching_counts", histogram.matching},
          {"other_counts", histogram.others}};
}

}  // namespace

Json figure_json(const FigureData& figure) {
  return std::visit([](const auto& data) { return json_of(data); }, figure.data);
}

}  // namespace gallop::train

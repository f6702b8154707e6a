#pragma once

// Predictions with scikit-learn's results: tests/parity/make_metrics.py.

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "gallop/train/metrics/metric.h"
#include "unit/config/component_of.h"
#include "unit/fixtures.h"

namespace gallop::train {

struct MetricCase {
  std::string name;
  MetricTask task;
  Predictions all;
  nlohmann::json values;   ///< By metric and its options.
  nlohmann::json figures;  ///< By name.
};

inline MetricTask::Target target_kind(const std::string& name) {
  static const std::map<std::string, MetricTask::Target> kKinds = {
      {"classes", MetricTask::Target::kClasses}, {"tokens", MetricTask::Target::kTokens},
      {"binary", MetricTask::Target::kBinary},   {"labels", MetricTask::Target::kLabels},
      {"numbers", MetricTask::Target::kNumbers}, {"sequences", MetricTask::Target::kSequences},
  };
  return kKinds.at(name);
}

inline std::vector<MetricCase> metric_cases() {
  std::ifstream file(fixtures() / "metrics.json");
  const auto json = nlohmann::json::parse(file);
  std::vector<MetricCase> cases;
  for (const auto& one : json["cases"]) {
    const auto sizes = one["shape"].get<std::vector<int64_t>>();
    const auto target_sizes = one["target_shape"].get<std::vector<int64_t>>();
    MetricCase& added = cases.emplace_back();
    added.name = one["name"];
    added.task = {.target = target_kind(one["target_kind"]),
                  .classes = one["classes"],
                  .tokens_are_characters = true};
    added.values = one["values"];
    added.figures = one["figures"];
    const double scale = one["scale"];
    added.all.outputs =
        at::tensor(one["outputs"].get<std::vector<double>>()).div(scale).to(at::kFloat);
    added.all.outputs = added.all.outputs.reshape(sizes);
    added.all.target = at::tensor(one["target"].get<std::vector<int64_t>>()).reshape(target_sizes);
    if (added.task.target == MetricTask::Target::kSequences) {
      added.all.outputs = added.all.outputs.to(at::kLong);
    }
    if (added.task.target == MetricTask::Target::kNumbers) {
      added.all.target = added.all.target.to(at::kDouble).div(scale).to(at::kFloat);
    }
  }
  return cases;
}

inline std::unique_ptr<Metric> metric_of(const std::string& text, const MetricTask& task) {
  static const MetricRegistry kMetrics = built_in_metrics();
  return kMetrics.build(config::component_of(kMetrics, text), task);
}

/// Samples from `begin` to `end`.
inline Predictions part_of(const Predictions& all, int64_t begin, int64_t end) {
  return {.outputs = all.outputs.slice(0, begin, end), .target = all.target.slice(0, begin, end)};
}

}  // namespace gallop::train

#include "gallop/track/cross_validation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/defined_text.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/run_summary.h"

namespace gallop::track {

namespace {

using Options = std::map<std::string, std::string>;

// Without the fold, and without what a run measures for itself.
Options shared_options(Options options) {
  for (const char* own : {"data.fold", "train.precision", "train.channels_last"}) {
    options.erase(own);
  }
  return options;
}

int64_t number_in(const Options& options, const std::string& name) {
  const auto found = options.find(name);
  if (found == options.end()) return 0;
  return parse_number<int64_t>(found->second).value_or(0);
}

FoldMetric metric_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  FoldMetric metric;
  for (const double value : values) metric.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - metric.mean) * (value - metric.mean);
  metric.deviation = std::sqrt(squares / std::max(1.0, count - 1));
  return metric;
}

// What an evaluation records besides its metrics.
bool is_metric(const std::string& name) {
  return name.find('.') == std::string::npos && name != "targets" && name != "seconds" &&
         name != "training_seconds" && name != "skipped_samples";
}

// Those that all have, of evaluations.
std::map<std::string, FoldMetric> metrics_of(const std::vector<RunSummary>& runs) {
  std::map<std::string, FoldMetric> metrics;
  for (const auto& [name, first] : runs.front().metrics) {
    if (!is_metric(name)) continue;
    std::vector<double> values;
    for (const RunSummary& run : runs) {
      const auto found = run.metrics.find(name);
      if (found != run.metrics.end()) values.push_back(found->second.last);
    }
    if (values.size() == runs.size()) metrics[name] = metric_of(values);
  }
  return metrics;
}

}  // namespace

std::optional<CrossValidation> cross_validation_of(const fs::path& run) {
  const Options own = recipe_options(run);
  const int64_t folds = number_in(own, "data.folds");
  if (folds == 0) return std::nullopt;
  const Options wanted = shared_options(own);
  std::map<int64_t, RunSummary> by_fold;
  by_fold[number_in(own, "data.fold")] = summarize_run(run);
  std::vector<fs::path> others;
  for (const auto& entry :
       fs::directory_iterator(fs::absolute(run).lexically_normal().parent_path())) {
    if (RunFolder::is_run(entry.path())) others.push_back(entry.path());
  }
  std::sort(others.begin(), others.end());
  for (const fs::path& other : others) {
    try {
      const Options options = recipe_options(other);
      const int64_t fold = number_in(options, "data.fold");
      if (by_fold.contains(fold) || shared_options(options) != wanted) continue;
      const RunSummary summary = summarize_run(other);
      if (summary.state == RunState::kFinished) by_fold[fold] = summary;
    } catch (const DataError&) {
      continue;  // A damaged run beside it.
    }
  }
  if (by_fold.size() < 2) return std::nullopt;
  std::vector<RunSummary> runs;
  CrossValidation found{.folds = folds, .runs = {}, .metrics = {}};
  for (const auto& [fold, summary] : by_fold) {
    runs.push_back(summary);
    found.runs.push_back(summary.name);
  }
  found.metrics = metrics_of(runs);
  return found;
}

std::string describe(const std::map<std::string, FoldMetric>& metrics) {
  std::string text;
  for (const auto& [name, metric] : metrics) {
    text +=
        fmt::format("{}{} {} ± {}", text.empty() ? "" : ", ", printable(name),
                    defined_text(metric.mean, "{:.4g}"), defined_text(metric.deviation, "{:.2g}"));
  }
  return text;
}

}  // namespace gallop::track

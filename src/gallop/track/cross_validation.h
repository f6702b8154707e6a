#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The last values of a metric over the folds.
struct FoldMetric {
  double mean = 0;
  double deviation = 0;  ///< Sample standard deviation.
};

/// The runs of a cross-validation (`data.folds`) in one folder, and what they have in common.
struct CrossValidation {
  int64_t folds = 0;
  std::vector<std::string> runs;  ///< In the order of their folds; the finished ones.
  /// Metrics of evaluations that all of these runs have, such as "accuracy".
  std::map<std::string, FoldMetric> metrics;

  bool is_complete() const { return static_cast<int64_t>(runs.size()) == folds; }
};

/// The cross-validation that a run belongs to: with the finished runs beside it whose options
/// differ in `data.fold` and in what is measured for each run (precision and memory format).
/// Nothing for a run without folds, or if no other fold has been trained.
std::optional<CrossValidation> cross_validation_of(const fs::path& run);

/// "accuracy 0.9123 ± 0.0031, loss 0.25 ± 0.013".
std::string describe(const std::map<std::string, FoldMetric>& metrics);

}  // namespace gallop::track

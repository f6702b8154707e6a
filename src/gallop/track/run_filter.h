#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/config/expression.h"
#include "gallop/track/run_column.h"

namespace gallop::track {

/// Filters runs by a formula (config::Expression) over columns (RunColumn):
///
///     metrics.accuracy > 0.9 and params.optimizer.lr < 0.1 and state == "finished"
///
/// `=` equals `==`, as in MLflow. A missing value, like NaN, is unequal to everything, neither less
/// nor greater than anything, and false on its own.
class RunFilter {
 public:
  /// An empty text matches all runs. Throws UsageError with the position of the first mistake, and
  /// the errors of RunColumn.
  RunFilter(const std::string& text, const RunIndex& index);

  bool chooses(const RunRow& row) const;

 private:
  std::optional<config::Expression> formula_;
  std::vector<RunColumn> columns_;  ///< In the formula's order.
};

}  // namespace gallop::track

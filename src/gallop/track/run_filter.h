#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/config/expression.h"
#include "gallop/track/run_column.h"

namespace gallop::track {

/// Chooses runs by a formula (config::Expression) over the names of columns (RunColumn):
///
///     metrics.accuracy > 0.9 and params.optimizer.lr < 0.1 and state == "finished"
///
/// `=` is the same as `==`, as in MLflow's. What a run has not is unequal to all, and neither above
/// nor below anything.
class RunFilter {
 public:
  /// An empty text chooses all. Throws UsageError with the place of the first mistake, or as
  /// RunColumn does.
  RunFilter(const std::string& text, const RunIndex& index);

  bool chooses(const RunRow& row) const;

 private:
  std::optional<config::Expression> formula_;
  std::vector<RunColumn> columns_;  ///< As the formula names them.
};

}  // namespace gallop::track

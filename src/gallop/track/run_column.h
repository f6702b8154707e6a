#pragma once

#include <map>
#include <string>

#include "gallop/config/expression.h"
#include "gallop/track/run_index.h"

namespace gallop::track {

/// The values of runs in a column: `metrics.NAME` (the last value), `params.NAME`, `tags.NAME`, or
/// `name`, `state`, `created` (seconds since 1970), `seconds`, `steps`.
class RunColumn {
 public:
  /// Throws UsageError, with the nearest name, if no run has such a metric, option or tag.
  RunColumn(std::string name, const RunIndex& index);

  /// Empty if the run has none. Numbers with full precision.
  std::string text(const RunRow& row) const;
  /// Numeric options and tags as numbers; NaN if the run has none.
  config::Expression::Value value(const RunRow& row) const;

 private:
  std::string name_;
  std::map<std::string, double> numbers_;  ///< By run.
  std::map<std::string, std::string> texts_;
};

}  // namespace gallop::track

#pragma once

#include <map>
#include <string>

#include "gallop/config/expression.h"
#include "gallop/track/run_index.h"

namespace gallop::track {

/// What runs have of one name: `metrics.NAME` (the last value), `params.NAME`, `tags.NAME`, or
/// `name`, `state`, `created` (seconds since 1970), `seconds`, `steps`.
class RunColumn {
 public:
  /// Throws UsageError where no run has such a metric, option or tag, with the nearest name.
  RunColumn(std::string name, const RunIndex& index);

  /// Empty where the run has none. Numbers have all their digits.
  std::string text(const RunRow& row) const;
  /// A number where an option or tag is the text of one; NaN where the run has none.
  config::Expression::Value value(const RunRow& row) const;

 private:
  std::string name_;
  std::map<std::string, double> numbers_;  ///< By run.
  std::map<std::string, std::string> texts_;
};

}  // namespace gallop::track

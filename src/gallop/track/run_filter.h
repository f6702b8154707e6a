#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/expression.h"
#include "gallop/track/run_index.h"

namespace gallop::track {

/// Chooses runs by a formula (config::Expression) over `metrics.NAME`, `params.NAME`, `tags.NAME`
/// and `name`, `state`, `created`, `seconds`, `steps`:
///
///     metrics.accuracy > 0.9 and params.optimizer.lr < 0.1 and state == "finished"
///
/// `=` is the same as `==`, as in MLflow's. Options whose text is a number are compared as numbers.
/// What a run has not is unequal to all, and neither above nor below anything.
class RunFilter {
 public:
  /// An empty text chooses all. Throws UsageError with the place of the first mistake, or the
  /// nearest name where no run has such a metric, option or tag.
  RunFilter(const std::string& text, const RunIndex& index);

  bool chooses(const RunRow& row) const;

 private:
  using Values = std::map<std::string, config::Expression::Value>;
  struct Name {
    bool is_of_row = false;
    std::string text;
    Values values;  ///< By run.
  };
  config::Expression::Value value_of(const Name& name, const RunRow& row) const;

  std::optional<config::Expression> formula_;
  std::vector<Name> names_;
};

}  // namespace gallop::track

#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// A trial is pruned whose last `patience` + 1 reports are all worse than the best before them, by
/// more than `min_delta`; if `then` names another pruner, only where that one prunes as well. NaN
/// is worse than any number: a trial whose last reports are all NaN is pruned, which in Optuna goes
/// on.
struct PatienceConfig {
  explicit PatienceConfig(const config::Catalog& catalog) : then(catalog, "none") {}
  int64_t patience = 3;
  double min_delta = 0;
  config::Component then;
};

void visit(config::Visitor& visitor, PatienceConfig& config);
/// Throws UsageError where `then` is patience, or asha, whose trials stop without being asked.
std::unique_ptr<Pruner> make_patience(const PatienceConfig& config, const StudySettings& settings);

}  // namespace gallop::tune

#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// Prunes a trial whose last `patience` + 1 reports are all worse than the best before them, by
/// more than `min_delta`; if `then` names another pruner, only if that one prunes as well. NaN is
/// worse than any number: unlike in Optuna, a trial whose last reports are all NaN is pruned.
struct PatienceConfig {
  explicit PatienceConfig(const config::Catalog& catalog) : then(catalog, "none") {}
  int64_t patience = 3;
  double min_delta = 0;
  config::Component then;
};

void visit(config::Visitor& visitor, PatienceConfig& config);
/// Throws UsageError if `then` is patience, or asha, whose trials stop at rungs without being
/// pruned.
std::unique_ptr<Pruner> make_patience(const PatienceConfig& config, const StudySettings& settings);

}  // namespace gallop::tune

#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// Disables pruning: every trial runs to its end.
struct NoneConfig {};

void visit(config::Visitor& visitor, NoneConfig& config);
std::unique_ptr<Pruner> make_none(const NoneConfig& config, const StudySettings& settings);

}  // namespace gallop::tune

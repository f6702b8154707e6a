#pragma once

#include <optional>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// Complete trials whose losses are all finite, or at least that of one objective.
std::vector<const Trial*> judged_trials(const Study& study, std::optional<size_t> objective);

/// Numbers of at least 0 with their sum 1; equal ones where all are 0.
std::vector<double> as_shares(std::vector<double> values);

/// Throws UsageError where the study has no such objective.
void check_objective(const Study& study, std::optional<size_t> objective);

/// Whether a parameter has more than one value.
bool is_variable(const Parameter& parameter);

}  // namespace gallop::tune

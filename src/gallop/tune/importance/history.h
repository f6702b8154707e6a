#pragma once

#include <optional>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// The complete trials whose losses are finite: all losses, or that of one objective.
std::vector<const Trial*> judged_trials(const Study& study, std::optional<size_t> objective);

/// Non-negative values normalized to sum 1; uniform if all are 0.
std::vector<double> as_shares(std::vector<double> values);

/// Throws UsageError if the study has no such objective.
void check_objective(const Study& study, std::optional<size_t> objective);

/// Whether a parameter has more than one value.
bool is_variable(const Parameter& parameter);

}  // namespace gallop::tune

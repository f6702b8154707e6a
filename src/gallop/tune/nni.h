#pragma once

#include <string>

namespace gallop::tune {

/// Converts an NNI search space in JSON (`{"lr": {"_type": "loguniform", "_value": [1e-4, 0.1]}}`)
/// to the lines of a sweep from 'parameters:' on. Nested parameters of a choice are named
/// PARAMETER.CHOICE.NAME. Throws UsageError, with a line for each mistake, for an invalid space and
/// for features that sweeps do not have.
std::string sweep_of_nni(const std::string& json, const std::string& file_name);

}  // namespace gallop::tune

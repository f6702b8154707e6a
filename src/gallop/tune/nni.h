#pragma once

#include <string>

namespace gallop::tune {

/// The search space of NNI in a JSON text (`{"lr": {"_type": "loguniform", "_value": [1e-4,
/// 0.1]}}`) as the lines of a sweep from 'parameters:' on. What a choice brings with it is named
/// PARAMETER.CHOICE.NAME. Throws UsageError, with a line for each mistake, for what is no such
/// space, and for what a sweep cannot say.
std::string sweep_of_nni(const std::string& json, const std::string& file_name);

}  // namespace gallop::tune

#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/optimize/experiments.h"

// Results of experiments as JSON. Numbers that are not finite become null. Readers throw
// nlohmann::json::exception for anything that the writers do not write.
namespace gallop::optimize {

using Json = nlohmann::ordered_json;

Json json_of(const Estimate& one);
Json json_of(const Speed& one);
Json json_of(const Settings& one);
Json json_of(const std::vector<Prediction>& all);
Json json_of(const Comparison& one);
Json json_of(const TrainingResult& one);

Settings settings_of(const Json& json);
std::vector<Prediction> predictions_of(const Json& json);
Comparison comparison_of(const Json& json);
TrainingResult run_of(const Json& json);

}  // namespace gallop::optimize

#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/config/node.h"
#include "gallop/tune/space.h"

namespace gallop::tune {

/// The value that W&B reads with PyYAML, by YAML 1.1: `yes` is true, `010` is 8, `1:30` is 90,
/// `1.0` stays a fraction, and `1e-3` is a string. Infinity and NaN are the strings that Python
/// prints.
nlohmann::ordered_json yaml_1_1_value(const config::Node& node);

/// Rewrites booleans and numbers of YAML 1.1 as those of YAML 1.2.
void read_as_yaml_1_1(config::Node& node);

/// The names of nested parameters ("optimizer" for `optimizer: {parameters: {lr: ...}}`), parents
/// first.
std::vector<std::string> nested_parameters(const config::Node& parameters);

/// The parameters of a point as one object, with a nested object for each name in `nested`.
nlohmann::ordered_json nested_values(const Space& space, const Point& point,
                                     const std::vector<std::string>& nested);

/// A value as in Python: not an integer if its interval is not one of integers.
nlohmann::ordered_json python_value(const Space& space, size_t index, double value);
/// nested_values() of these.
nlohmann::ordered_json python_values(const Space& space, const Point& point,
                                     const std::vector<std::string>& nested);

/// A value in Python's notation, as str() formats it: True, None, 1e-05, ['a', 1].
std::string python_text(const nlohmann::ordered_json& value);
/// A value as Python's json.dumps() formats it.
std::string python_json(const nlohmann::ordered_json& value);

}  // namespace gallop::tune

#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/config/node.h"
#include "gallop/tune/space.h"

namespace gallop::tune {

/// Resolves plain scalars by YAML 1.1, as W&B does: `True`, `yes` and `on` are true, `Null` and `~`
/// are null.
void read_as_yaml_1_1(config::Node& node);

/// The names of nested parameters ("optimizer" for `optimizer: {parameters: {lr: ...}}`), parents
/// first.
std::vector<std::string> nested_parameters(const config::Node& parameters);

/// The parameters of a point as one object, with a nested object for each name in `nested`.
nlohmann::ordered_json nested_values(const Space& space, const Point& point,
                                     const std::vector<std::string>& nested);

/// A value in Python's notation, as str() formats it: True, None, 1e-05, ['a', 1].
std::string python_text(const nlohmann::ordered_json& value);
/// A value as Python's json.dumps() formats it.
std::string python_json(const nlohmann::ordered_json& value);

}  // namespace gallop::tune

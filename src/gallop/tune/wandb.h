#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/config/node.h"
#include "gallop/tune/space.h"

namespace gallop::tune {

/// Makes plain scalars what YAML 1.1 has them for, in which W&B reads sweeps: `True`, `yes` and
/// `on` are true, `Null` and `~` are null.
void read_as_yaml_1_1(config::Node& node);

/// The names of nested parameters ("optimizer" of `optimizer: {parameters: {lr: ...}}`), those that
/// hold others first.
std::vector<std::string> nested_parameters(const config::Node& parameters);

/// The parameters that a point has as one object, with an object for each name of `nested`.
nlohmann::ordered_json nested_values(const Space& space, const Point& point,
                                     const std::vector<std::string>& nested);

/// What str() of Python makes of a value: True, None, 1e-05, ['a', 1].
std::string python_text(const nlohmann::ordered_json& value);
/// What its json.dumps() makes of one.
std::string python_json(const nlohmann::ordered_json& value);

}  // namespace gallop::tune

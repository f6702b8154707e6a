#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/config/node.h"
#include "gallop/config/visitor.h"

namespace gallop::config {

using VisitFields = std::function<void(Visitor&)>;

/// Reads a map into a config struct: sets each given field, and records every mistake: unknown key
/// (with the nearest name), wrong type, value out of range, unknown family member.
void read_fields(const Node& map, const VisitFields& visit_fields, Problems& problems);

/// Writes the current values as a map. Each value has the origin of its path in `written` (the map
/// that was read), or kDefault.
Node write_fields(const VisitFields& visit_fields, const Node& written);

/// One line of help for an option: key, type, default, help text. `prefix` is prepended to every
/// key.
struct FieldHelp {
  std::string key;
  std::string type;     ///< "number >= 0", "sgd | adamw", "true | false", ...
  std::string initial;  ///< The default.
  std::string help;
};
std::vector<FieldHelp> describe_fields(const VisitFields& visit_fields, const std::string& prefix);

}  // namespace gallop::config

#pragma once

#include <string>

#include "gallop/config/visitor.h"

// What those that read fields and those that describe them call things.
namespace gallop::config {

/// The key of a field within what `prefix` names, which may be empty.
std::string join_key(const std::string& prefix, const std::string& name);

/// The noun with the numbers that a field may have, such as "a number above 0 and at most 1".
std::string allowed_range(const Field& field, const char* noun);

}  // namespace gallop::config

#pragma once

#include <string>

#include "gallop/config/visitor.h"

// Terms shared by the readers and the descriptions of fields.
namespace gallop::config {

/// The full key of a field below `prefix`, which may be empty.
std::string join_key(const std::string& prefix, const std::string& name);

/// The noun with the allowed range of a field, such as "a number above 0 and at most 1".
std::string allowed_range(const Field& field, const char* noun);

}  // namespace gallop::config

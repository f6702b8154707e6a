#pragma once

#include <string>

#include "gallop/tune/space.h"

namespace gallop::tune {

/// A value as a command-line argument: JSON, but strings without quotes.
std::string value_word(const Space& space, size_t index, double value);

}  // namespace gallop::tune

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gallop/config/node.h"

namespace gallop::config {

/// The typed value of a scalar, empty if the text is not of that type. Quoted text is always a
/// string.
std::optional<bool> as_bool(const Node& node);        ///< true, false
std::optional<int64_t> as_integer(const Node& node);  ///< 12, -3, 1_000, 1e3
std::optional<double> as_number(const Node& node);    ///< 0.1, 5e-4, 3
bool is_null(const Node& node);                       ///< nothing, null, ~
bool is_auto(const Node& node);                       ///< auto

/// Validates a text option that is a number of bytes above 0: the error, or an empty text.
std::string wrong_bytes(const std::string& text);

/// The shortest text that parses to the same number; NaN has no sign.
std::string number_text(double value);

}  // namespace gallop::config

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gallop/config/node.h"

namespace gallop::config {

/// The typed value of a scalar, empty where the text is not of that type. Quoted text is only text.
std::optional<bool> as_bool(const Node& node);        ///< true, false
std::optional<int64_t> as_integer(const Node& node);  ///< 12, -3, 1_000, 1e3
std::optional<double> as_number(const Node& node);    ///< 0.1, 5e-4, 3
bool is_null(const Node& node);                       ///< nothing, null, ~
bool is_auto(const Node& node);                       ///< auto

/// A check of a text option: what is wrong with a number of bytes above 0, or nothing.
std::string wrong_bytes(const std::string& text);

/// The shortest text that reads back as the same number.
std::string number_text(double value);

}  // namespace gallop::config

#pragma once

#include <string>

namespace gallop {

/// The number in this format, such as "{:.4f}", or "undefined" if it is NaN.
std::string defined_text(double number, const char* format);

}  // namespace gallop

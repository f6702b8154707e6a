#pragma once

#include <string>
#include <string_view>

namespace gallop::plot {

/// The number of characters of a UTF-8 text.
size_t width_of(std::string_view text);

/// printable() text, truncated to this many characters with a final `ellipsis`.
std::string shortened(std::string_view text, size_t most, std::string_view ellipsis);

/// Pads a text with spaces to this many characters.
std::string padded(std::string text, size_t width);

}  // namespace gallop::plot

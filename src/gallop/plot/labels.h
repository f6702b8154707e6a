#pragma once

#include <string>
#include <string_view>

namespace gallop::plot {

/// How many characters a text of UTF-8 has.
size_t width_of(std::string_view text);

/// printable() text of at most so many characters; a longer one ends in `ellipsis`.
std::string shortened(std::string_view text, size_t most, std::string_view ellipsis);

/// Filled up with blanks to so many characters.
std::string padded(std::string text, size_t width);

}  // namespace gallop::plot

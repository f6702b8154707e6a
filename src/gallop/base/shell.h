#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gallop {

/// Whether a text has letters of ASCII, digits and ._-+:,@%/= and nothing else: one word for
/// shells and for sbatch, without quotes, escapes or comments.
bool is_plain_word(std::string_view text);

/// The text as one argument in a command of a POSIX shell, in single quotes where it needs them.
std::string shell_word(std::string_view text);
/// The words of a command as a line for it.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace gallop

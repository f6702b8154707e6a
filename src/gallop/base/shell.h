#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gallop {

/// Whether a text consists of ASCII letters, digits and ._-+:,@%/= only: one word for shells and
/// sbatch, without quotes, escapes or comments.
bool is_plain_word(std::string_view text);

/// Quotes a text as one argument for a POSIX shell, if needed.
std::string shell_word(std::string_view text);
/// Joins arguments to a command line for a POSIX shell.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace gallop

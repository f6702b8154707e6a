#pragma once

namespace gallop::app {

/// Characters in a line of the terminal that standard output is; 80 where it is none.
int terminal_columns();

/// Whether standard output is a terminal that shows UTF-8, by the locale that the environment
/// names.
bool is_utf8_terminal();

}  // namespace gallop::app

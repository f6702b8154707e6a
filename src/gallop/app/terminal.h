#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gallop/plot/plot.h"

namespace gallop::app {

/// The columns of the terminal on standard output; 80 if it is none.
int terminal_columns();
/// The columns for text that is wrapped: those of the terminal; 120 if it is none.
int text_columns();
/// A text that is printed from this column on, broken at spaces into lines that end within
/// `columns` and begin in this column; with a final line feed. Narrow terminals have lines of 30
/// characters.
std::string wrapped_at(size_t column, std::string_view text, size_t columns);
/// The column of the descriptions of options in the help of a command.
inline constexpr size_t kHelpColumn = 28;
/// The help of a command in lines of at most so many columns; descriptions of options stay in their
/// column.
std::string wrapped_help(const std::string& text, size_t columns);
/// The rows of that terminal; 24 if it is none.
int terminal_rows();

/// Prints a plot on standard output, in the width and characters that the terminal supports.
void print_plot(const plot::Plot& plot, int rows = plot::TextStyle().rows);

}  // namespace gallop::app

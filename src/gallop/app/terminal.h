#pragma once

#include "gallop/plot/plot.h"

namespace gallop::app {

/// Characters in a line of the terminal that standard output is; 80 where it is none.
int terminal_columns();
/// Lines that it has; 24 where it is none.
int terminal_rows();

/// Prints a plot on standard output, as wide and in such characters as it shows.
void print_plot(const plot::Plot& plot, int rows = plot::TextStyle().rows);

}  // namespace gallop::app

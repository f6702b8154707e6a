#pragma once

#include "gallop/plot/plot.h"

namespace gallop::app {

/// The columns of the terminal on standard output; 80 if it is none.
int terminal_columns();
/// The rows of that terminal; 24 if it is none.
int terminal_rows();

/// Prints a plot on standard output, in the width and characters that the terminal supports.
void print_plot(const plot::Plot& plot, int rows = plot::TextStyle().rows);

}  // namespace gallop::app

#include "gallop/app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace gallop::app {

static winsize terminal_size() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

int terminal_columns() {
  const int columns = terminal_size().ws_col;
  return columns > 0 ? columns : 80;
}

int terminal_rows() {
  const int rows = terminal_size().ws_row;
  return rows > 0 ? rows : 24;
}

// By the locale environment variables.
static bool is_utf8_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  // The first non-empty variable is used, as in setlocale().
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string locale(value);
    for (char& c : locale) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return locale.find("UTF-8") != std::string::npos || locale.find("UTF8") != std::string::npos;
  }
  return false;
}

void print_plot(const plot::Plot& plot, int rows) {
  const std::string text = plot::to_text(
      plot, {.columns = terminal_columns(), .rows = rows, .unicode = is_utf8_terminal()});
  std::fputs(text.c_str(), stdout);
}

}  // namespace gallop::app

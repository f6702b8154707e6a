#include "gallop/app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gallop/base/text.h"

namespace gallop::app {

static winsize terminal_size() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

int terminal_columns() {
  const int columns = terminal_size().ws_col;
  return columns > 0 ? columns : 80;
}

int text_columns() {
  constexpr int kOfFiles = 120;
  const int columns = terminal_size().ws_col;
  return columns > 0 ? columns : kOfFiles;
}

std::string wrapped_at(size_t column, std::string_view text, size_t columns) {
  constexpr size_t kLeast = 30;
  const std::string lines = wrapped(text, std::max(columns, column + kLeast) - column);
  std::string all;
  for (size_t i = 0; i < lines.size(); ++i) {
    all += lines[i];
    if (lines[i] == '\n' && i + 1 < lines.size()) all.append(column, ' ');
  }
  return all;
}

std::string wrapped_help(const std::string& text, size_t columns) {
  std::string all;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const bool is_option = line.size() > kHelpColumn && line.starts_with("  ") &&
                           line[kHelpColumn - 1] == ' ' && line[kHelpColumn] != ' ';
    const size_t indent =
        is_option ? kHelpColumn : std::min(line.find_first_not_of(' '), line.size());
    all += line.substr(0, indent);
    all += wrapped_at(indent, line.substr(indent), columns);
  }
  return all;
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

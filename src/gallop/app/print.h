#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::app {

/// Prints to a stream like fmt::print, but ignores errors, such as that its reader has ended: the
/// program continues, or stops and saves (SignalGuard).
template <typename... Values>
void print_to(std::FILE* stream, fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  std::fwrite(text.data(), 1, text.size(), stream);
}

/// The same to standard error.
template <typename... Values>
void print_error(fmt::format_string<Values...> format, Values&&... values) {
  print_to(stderr, format, std::forward<Values>(values)...);
}

/// Prints "gallop: warning: LINE" to standard error; nothing if the line is empty.
inline void print_warning(const std::string& line) {
  if (!line.empty()) print_error("gallop: warning: {}\n", printable(line));
}

}  // namespace gallop::app

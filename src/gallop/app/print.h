#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace gallop::app {

/// Prints to a stream as fmt::print does, but ignores that it cannot be written, as where its
/// reader has ended: what is under way goes on, or stops and saves (SignalGuard).
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

}  // namespace gallop::app

#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace gallop::launch {

/// Digits as a number from 0 that fits an int; nothing for any other text.
inline std::optional<int> parse_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace gallop::launch

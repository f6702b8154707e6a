#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace gallop {

/// The entry of `names` nearest to `name` by edit distance; empty if none is close enough (more
/// than a third of its characters differ).
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

/// Whether a whole text matches a pattern, in which '*' stands for any number of characters and '?'
/// for exactly one.
bool matches_pattern(std::string_view text, std::string_view pattern);

/// Whether matches_pattern() is true of one of them.
bool matches_any(std::string_view text, const std::vector<std::string>& patterns);

/// "a, b or c" with the given last word; empty for no names.
std::string join_names(const std::vector<std::string>& names, std::string_view last_word = "or");

/// Parses a whole text as a number, as std::from_chars does: digits, with '-' if T is signed, and
/// for floating-point T a point, an exponent, "inf" and "nan". Nothing for any other text, such as
/// with spaces or '+', and for values that do not fit T.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

/// 1234567 as "1,234,567".
std::string format_count(int64_t count);

/// 1536 as "1.5 KiB".
std::string format_bytes(int64_t bytes);

/// Parses "2 GiB", "512 MiB", "1.5 GB" or "4096 bytes" to bytes; nothing for any other text.
std::optional<int64_t> parse_bytes(std::string_view text);

/// 3725 seconds as "1:02:05", 62 as "1:02", 0.25 as "0.25 s".
std::string format_duration(double seconds);

/// Replaces control characters by '?', so that a file name cannot control the terminal. UTF-8 is
/// kept.
std::string printable(std::string_view text);

/// printable() text, escaped for XML text and attributes.
std::string xml_text(std::string_view text);

/// The text in lines of at most so many characters, broken at spaces, each with a line feed; those
/// after the first begin with `indent`. 0: one line.
std::string wrapped(std::string_view text, size_t columns, std::string_view indent = {});

}  // namespace gallop

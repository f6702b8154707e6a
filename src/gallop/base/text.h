#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace gallop {

/// The entry of `names` nearest to `name` by edit distance, or empty where none is near enough to
/// be meant (more than a third of its letters differ).
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

/// Whether a whole text is what a pattern says, in which '*' stands for any letters, also none, and
/// '?' for any one.
bool matches_pattern(std::string_view text, std::string_view pattern);

/// "a, b or c" with the given last word; empty for no names.
std::string join_names(const std::vector<std::string>& names, std::string_view last_word = "or");

/// A whole text as a number, as std::from_chars reads it: digits, behind '-' where T has a sign,
/// and for a floating-point T a point, an exponent, "inf" and "nan". Nothing for any other text, as
/// with blanks or '+', and for what does not fit T.
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

/// "2 GiB", "512 MiB", "1.5 GB" or "4096 bytes" in bytes; nothing where it is no such text.
std::optional<int64_t> parse_bytes(std::string_view text);

/// 3725 seconds as "1:02:05", 62 as "1:02", 0.25 as "0.25 s".
std::string format_duration(double seconds);

/// Control characters replaced by '?', so that a file name cannot steer the terminal. UTF-8 stays.
std::string printable(std::string_view text);

/// printable() text as it stands in XML, between tags or in an attribute.
std::string xml_text(std::string_view text);

}  // namespace gallop

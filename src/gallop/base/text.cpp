#include "gallop/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace gallop {

namespace {

// Edit distance in which swapping two neighboring letters counts as one edit.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const auto& candidate : names) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  // Backtracking state: where the last '*' began to match.
  size_t at = 0, of = 0, star = std::string_view::npos, from = 0;
  while (at < text.size()) {
    if (of < pattern.size() && pattern[of] == '*') {
      star = of++;
      from = at;
    } else if (of < pattern.size() && (pattern[of] == '?' || pattern[of] == text[at])) {
      ++at;
      ++of;
    } else if (star != std::string_view::npos) {
      of = star + 1;
      at = ++from;
    } else {
      return false;
    }
  }
  while (of < pattern.size() && pattern[of] == '*') ++of;
  return of == pattern.size();
}

bool matches_any(std::string_view text, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(text, pattern); });
}

std::string join_names(const std::vector<std::string>& names, std::string_view last_word) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? fmt::format(" {} ", last_word) : ", ";
    text += names[i];
  }
  return text;
}

std::string format_count(int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    const bool after_digit = i > 0 && digits[i - 1] != '-';
    if (after_digit && left % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {
      {"bytes", 1},   {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
      {"kB", 1000.0}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
  };
  double count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || !(count > 0)) return {};
  const std::string_view unit(stop != end && *stop == ' ' ? stop + 1 : stop, end);
  for (const auto& known : kUnits) {
    if (unit != known.name) continue;
    const double bytes = count * known.bytes;
    if (bytes < 1 || bytes > 0x1p62) return {};
    return static_cast<int64_t>(bytes);
  }
  return {};
}

std::string format_bytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0)) return "?";
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  const auto total = static_cast<int64_t>(std::llround(seconds));
  const int64_t hours = total / 3600, minutes = total / 60 % 60, rest = total % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string printable(std::string_view text) {
  std::string result(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F in UTF-8, among them another spelling of Escape and '['.
    const bool ends_control = i > 0 && text[i - 1] == '\xc2' && code >= 0x80 && code < 0xA0;
    if (ends_control) result[i - 1] = '?';
    if (ends_control || code < 0x20 || code == 0x7F) result[i] = '?';
  }
  return result;
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string wrapped(std::string_view text, size_t columns, std::string_view indent) {
  std::string all, line;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (columns > 0 && !line.empty() && line.size() + 1 + word.size() > columns) {
      all += line + "\n";
      line = std::string(indent) + std::string(word);
    } else {
      line += (line.empty() ? "" : " ") + std::string(word);
    }
  }
  return all + line + "\n";
}

}  // namespace gallop

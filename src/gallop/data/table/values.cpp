#include "gallop/data/table/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include "gallop/base/text.h"

namespace gallop::data {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return result;
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return text;
}

// Removes the marks between groups of three digits; nothing if they are at other places.
std::optional<std::string> without_thousands(std::string_view text, char mark, char decimal) {
  const std::string_view digits = without_sign(text);
  const std::string_view whole = digits.substr(0, std::min(digits.find(decimal), digits.size()));
  if (whole.starts_with('0')) return std::nullopt;  // "0,123" is less than 1.
  size_t group = whole.find(mark);
  if (group == std::string_view::npos || group == 0 || group > 3) return std::nullopt;
  for (; group < whole.size(); group += 4) {
    if (whole[group] != mark || whole.size() - group < 4) return std::nullopt;
  }
  std::string plain;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == mark) continue;
    if (!is_digit(whole[i])) return std::nullopt;
    plain += whole[i];
  }
  return std::string(text.substr(0, text.size() - digits.size())) + plain +
         std::string(digits.substr(whole.size()));
}

std::optional<double> parse_point(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !(is_digit(text.back()) || text.back() == '.')) return std::nullopt;
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// Reads from the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool is_done() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool take(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_any(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // A number of `least` to `most` digits.
  std::optional<int> number(size_t least, size_t most) {
    size_t count = 0;
    int value = 0;
    while (count < most && count < rest_.size() && is_digit(rest_[count])) {
      value = 10 * value + (rest_[count++] - '0');
    }
    if (count < least) return std::nullopt;
    rest_.remove_prefix(count);
    return value;
  }
  // ".25", or nothing.
  double fraction() {
    if (!take('.')) return 0;
    double value = 0, place = 0.1;
    for (; is_digit(peek()); place /= 10, rest_.remove_prefix(1)) value += place * (peek() - '0');
    return value;
  }

 private:
  std::string_view rest_;
};

std::optional<double> parse_time(Scanner& scan) {
  const auto hour = scan.number(1, 2);
  if (!hour || *hour > 23 || !scan.take(':')) return std::nullopt;
  const auto minute = scan.number(2, 2);
  if (!minute || *minute > 59) return std::nullopt;
  double seconds = 3600.0 * *hour + 60.0 * *minute;
  if (scan.take(':')) {
    const auto second = scan.number(2, 2);
    if (!second || *second > 60) return std::nullopt;
    seconds += *second + scan.fraction();
  }
  if (scan.take('Z')) return seconds;
  const char sign = scan.peek();
  if (!scan.take_any("+-")) return seconds;
  const auto hours = scan.number(2, 2);
  if (!hours) return std::nullopt;
  scan.take(':');
  const double offset = 3600.0 * *hours + 60.0 * scan.number(2, 2).value_or(0);
  return sign == '+' ? seconds - offset : seconds + offset;
}

}  // namespace

bool is_missing_value(std::string_view text, const std::vector<std::string>& further) {
  if (text.empty()) return true;
  if (std::find(further.begin(), further.end(), text) != further.end()) return true;
  constexpr size_t kLongest = 5;
  if (text.size() > kLongest) return false;
  static constexpr std::array<std::string_view, 9> kMissing = {
      "?", "na", "n/a", "nan", "-nan", "null", "none", "<na>", "#n/a"};
  const std::string word = lower(text);
  return std::find(kMissing.begin(), kMissing.end(), word) != kMissing.end();
}

std::optional<NumberFormat> number_format_named(std::string_view name) {
  for (const NumberFormat format : kNumberFormats) {
    if (name == kNumberFormatNames[static_cast<size_t>(format)]) return format;
  }
  return std::nullopt;
}

std::optional<double> parse_value(std::string_view text, NumberFormat format) {
  const bool has_point = format == NumberFormat::kPoint || format == NumberFormat::kPointThousands;
  const char decimal = has_point ? '.' : ',', mark = has_point ? ',' : '.';
  std::string plain;
  if (format == NumberFormat::kPointThousands || format == NumberFormat::kCommaThousands) {
    if (text.find(mark) != std::string_view::npos) {
      auto without = without_thousands(text, mark, decimal);
      if (!without) return std::nullopt;
      plain = std::move(*without);
      text = plain;
    }
  }
  if (has_point) return parse_point(text);
  if (text.find('.') != std::string_view::npos) return std::nullopt;
  std::string with_point(text);
  if (const size_t comma = with_point.find(','); comma != std::string::npos) {
    with_point[comma] = '.';
  }
  return parse_point(with_point);
}

bool is_code(std::string_view text) {
  const std::string_view digits = without_sign(text);
  if (digits.size() < 2 || !std::all_of(digits.begin(), digits.end(), is_digit)) return false;
  if (digits.front() == '0') return true;
  constexpr uint64_t kExact = uint64_t{1} << 53;
  const auto value = parse_number<uint64_t>(digits);
  return !value || *value > kExact;
}

std::optional<bool> parse_boolean(std::string_view text) {
  constexpr size_t kLongest = 5;
  if (text.empty() || text.size() > kLongest) return std::nullopt;
  const std::string word = lower(text);
  if (word == "true" || word == "yes" || word == "t" || word == "y") return true;
  if (word == "false" || word == "no" || word == "f" || word == "n") return false;
  return std::nullopt;
}

std::optional<double> parse_date(std::string_view text, std::string_view format) {
  constexpr size_t kShortest = 8;
  if (text.size() < kShortest || !is_digit(text.front())) return std::nullopt;
  Scanner scan(text);
  const bool is_year_first = format == "year-first";
  const auto first = is_year_first ? scan.number(4, 4) : scan.number(1, 2);
  const char mark = scan.peek();
  if (!first || !scan.take_any("-/.")) return std::nullopt;
  const auto second = scan.number(1, 2);
  if (!second || !scan.take(mark)) return std::nullopt;
  const auto third = is_year_first ? scan.number(1, 2) : scan.number(4, 4);
  if (!third) return std::nullopt;
  const int year = is_year_first ? *first : *third;
  const int month = format == "day-first" || is_year_first ? *second : *first;
  const int day = is_year_first ? *third : format == "day-first" ? *first : *second;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  constexpr double kDay = 86400;
  double seconds =
      kDay * static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  if (scan.take_any("T ")) {
    const auto time = parse_time(scan);
    if (!time) return std::nullopt;
    seconds += *time;
  }
  return scan.is_done() ? std::optional(seconds) : std::nullopt;
}

}  // namespace gallop::data

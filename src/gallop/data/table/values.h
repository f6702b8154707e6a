#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The values that the texts of a table stand for.
namespace gallop::data {

/// Whether a text stands for a missing value: empty, NA, N/A, nan, null, None, ? and their like in
/// other cases, or one of `further`.
bool is_missing_value(std::string_view text, const std::vector<std::string>& further = {});

/// How numbers are written: the decimal mark, and whether marks separate thousands.
enum class NumberFormat { kPoint, kPointThousands, kComma, kCommaThousands };
inline constexpr NumberFormat kNumberFormats[] = {
    NumberFormat::kPoint, NumberFormat::kPointThousands, NumberFormat::kComma,
    NumberFormat::kCommaThousands};

inline constexpr const char* kNumberFormatNames[] = {"point", "point-thousands", "comma",
                                                     "comma-thousands"};
/// The format of this name; nothing for any other text.
std::optional<NumberFormat> number_format_named(std::string_view name);

/// A finite number that is written in this format: "-1.5e3", "1,234.5", "1.234,5". Nothing for any
/// other text. Does not depend on the locale.
std::optional<double> parse_value(std::string_view text, NumberFormat format);

/// Whether a text is a whole number that a double cannot hold, or that begins with a zero, such as
/// an id or a postal code.
bool is_code(std::string_view text);

/// true, yes, t, y and false, no, f, n in any case.
std::optional<bool> parse_boolean(std::string_view text);

/// Formats of dates: the order of year, month and day.
inline constexpr const char* kDateFormats[] = {"year-first", "month-first", "day-first"};

/// Seconds since 1970 of "2024-01-31", "2024/1/31 12:30", "2024-01-31T12:30:15.5+02:00" or
/// "31.01.2024" in the given order. Nothing for any other text and for days that do not exist.
std::optional<double> parse_date(std::string_view text, std::string_view format);

}  // namespace gallop::data

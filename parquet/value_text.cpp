#include "parquet/value_text.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <functional>

#include <arrow/api.h>
#include <arrow/util/float16.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/table/cell.h"

namespace gallop::data {

namespace {

using Type = arrow::Type;

/// The shortest text that is read as the same number, as Python's repr(): with an exponent below
/// 1e-4 and from 1e16, and otherwise with a point.
std::string shortest(double value) {
  constexpr double kSmallest = 1e-4, kLargest = 1e16;
  const double size = std::abs(value);
  const bool is_fixed = size == 0 || (size >= kSmallest && size < kLargest);
  char text[32];
  const auto written =
      std::to_chars(text, text + sizeof text, value,
                    is_fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string result(text, written.ptr);
  if (std::isfinite(value) && result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

constexpr int64_t kSecondsOfDay = 86400;

// Rounds down.
int64_t divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

int64_t units_per_second(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND: return 1;
    case arrow::TimeUnit::MILLI: return 1'000;
    case arrow::TimeUnit::MICRO: return 1'000'000;
    case arrow::TimeUnit::NANO: return 1'000'000'000;
  }
  return 1;
}

std::string date_text(int64_t days) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

// "12:30:00", with the digits of the unit, but at least six, if there is a fraction.
std::string time_text(int64_t units, int64_t per_second) {
  constexpr int64_t kMicroseconds = 1'000'000;
  if (per_second < kMicroseconds) {
    units *= kMicroseconds / per_second;
    per_second = kMicroseconds;
  }
  const int64_t seconds = units / per_second, rest = units % per_second;
  std::string text =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (rest != 0) {
    const auto digits = std::to_string(per_second).size() - 1;
    text += fmt::format(".{:0{}}", rest, digits);
  }
  return text;
}

std::string timestamp_text(int64_t value, const arrow::TimestampType& type) {
  const int64_t per_second = units_per_second(type.unit());
  const int64_t days = divide(value, kSecondsOfDay * per_second);
  return date_text(days) + " " + time_text(value - days * kSecondsOfDay * per_second, per_second) +
         (type.timezone().empty() ? "" : "+00:00");
}

// As pandas: "-1 days +23:59:59".
std::string duration_text(int64_t value, arrow::TimeUnit::type unit) {
  const int64_t per_second = units_per_second(unit);
  const int64_t days = divide(value, kSecondsOfDay * per_second);
  return fmt::format("{} days {}{}", days, days < 0 ? "+" : "",
                     time_text(value - days * kSecondsOfDay * per_second, per_second));
}

/// The text of a value that is not null.
using ValueText = std::function<std::string(int64_t row)>;

template <typename Array>
ValueText integers(const arrow::Array& array) {
  const auto& values = static_cast<const Array&>(array);
  return [&values](int64_t row) { return std::to_string(values.Value(row)); };
}

template <typename Array>
ValueText views(const arrow::Array& array) {
  const auto& values = static_cast<const Array&>(array);
  return [&values](int64_t row) { return std::string(values.GetView(row)); };
}

template <typename Array>
ValueText decimals(const arrow::Array& array) {
  const auto& values = static_cast<const Array&>(array);
  return [&values](int64_t row) { return values.FormatValue(row); };
}

ValueText text_of(const arrow::Array& array);

ValueText dictionary(const arrow::Array& array) {
  const auto& values = static_cast<const arrow::DictionaryArray&>(array);
  return [&values, text = text_of(*values.dictionary())](int64_t row) {
    return text(values.GetValueIndex(row));
  };
}

ValueText times(const arrow::Array& array) {
  switch (array.type_id()) {
    case Type::DATE32: {
      const auto& values = static_cast<const arrow::Date32Array&>(array);
      return [&values](int64_t row) { return date_text(values.Value(row)); };
    }
    case Type::DATE64: {
      constexpr int64_t kDay = kSecondsOfDay * 1000;
      const auto& values = static_cast<const arrow::Date64Array&>(array);
      return [&values](int64_t row) { return date_text(divide(values.Value(row), kDay)); };
    }
    case Type::TIMESTAMP: {
      const auto& values = static_cast<const arrow::TimestampArray&>(array);
      const auto& type = static_cast<const arrow::TimestampType&>(*array.type());
      return [&values, &type](int64_t row) { return timestamp_text(values.Value(row), type); };
    }
    case Type::TIME32: {
      const auto& values = static_cast<const arrow::Time32Array&>(array);
      const auto unit = static_cast<const arrow::Time32Type&>(*array.type()).unit();
      return [&values, unit](int64_t row) {
        return time_text(values.Value(row), units_per_second(unit));
      };
    }
    case Type::TIME64: {
      const auto& values = static_cast<const arrow::Time64Array&>(array);
      const auto unit = static_cast<const arrow::Time64Type&>(*array.type()).unit();
      return [&values, unit](int64_t row) {
        return time_text(values.Value(row), units_per_second(unit));
      };
    }
    case Type::DURATION: {
      const auto& values = static_cast<const arrow::DurationArray&>(array);
      const auto unit = static_cast<const arrow::DurationType&>(*array.type()).unit();
      return [&values, unit](int64_t row) { return duration_text(values.Value(row), unit); };
    }
    default: return nullptr;
  }
}

ValueText floats(const arrow::Array& array) {
  if (array.type_id() == Type::HALF_FLOAT) {
    const auto& values = static_cast<const arrow::HalfFloatArray&>(array);
    return [&values](int64_t row) {
      return shortest(arrow::util::Float16::FromBits(values.Value(row)).ToDouble());
    };
  }
  if (array.type_id() == Type::FLOAT) {
    const auto& values = static_cast<const arrow::FloatArray&>(array);
    return [&values](int64_t row) { return shortest(values.Value(row)); };
  }
  const auto& values = static_cast<const arrow::DoubleArray&>(array);
  return [&values](int64_t row) { return shortest(values.Value(row)); };
}

// Null for types without text.
ValueText text_of(const arrow::Array& array) {
  switch (array.type_id()) {
    case Type::NA: return [](int64_t) { return std::string(); };
    case Type::BOOL: {
      const auto& values = static_cast<const arrow::BooleanArray&>(array);
      return [&values](int64_t row) { return std::string(values.Value(row) ? "True" : "False"); };
    }
    case Type::INT8: return integers<arrow::Int8Array>(array);
    case Type::INT16: return integers<arrow::Int16Array>(array);
    case Type::INT32: return integers<arrow::Int32Array>(array);
    case Type::INT64: return integers<arrow::Int64Array>(array);
    case Type::UINT8: return integers<arrow::UInt8Array>(array);
    case Type::UINT16: return integers<arrow::UInt16Array>(array);
    case Type::UINT32: return integers<arrow::UInt32Array>(array);
    case Type::UINT64: return integers<arrow::UInt64Array>(array);
    case Type::HALF_FLOAT:
    case Type::FLOAT:
    case Type::DOUBLE: return floats(array);
    case Type::DECIMAL32: return decimals<arrow::Decimal32Array>(array);
    case Type::DECIMAL64: return decimals<arrow::Decimal64Array>(array);
    case Type::DECIMAL128: return decimals<arrow::Decimal128Array>(array);
    case Type::DECIMAL256: return decimals<arrow::Decimal256Array>(array);
    case Type::STRING:
    case Type::BINARY: return views<arrow::BinaryArray>(array);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY: return views<arrow::LargeBinaryArray>(array);
    case Type::STRING_VIEW:
    case Type::BINARY_VIEW: return views<arrow::BinaryViewArray>(array);
    case Type::FIXED_SIZE_BINARY: return views<arrow::FixedSizeBinaryArray>(array);
    case Type::DICTIONARY: return dictionary(array);
    default: return times(array);
  }
}

/// The elements of row `row` of a list.
std::shared_ptr<arrow::Array> elements_of(const arrow::Array& array, int64_t row) {
  switch (array.type_id()) {
    case Type::LIST: return static_cast<const arrow::ListArray&>(array).value_slice(row);
    case Type::LARGE_LIST: return static_cast<const arrow::LargeListArray&>(array).value_slice(row);
    case Type::FIXED_SIZE_LIST:
      return static_cast<const arrow::FixedSizeListArray&>(array).value_slice(row);
    default: throw DataError("lists of the type " + array.type()->ToString() + " are not read");
  }
}

ValueText lists(const arrow::Array& array) {
  return [&array](int64_t row) {
    const auto elements = elements_of(array, row);
    const ValueText text = text_of(*elements);
    std::string all;
    for (int64_t i = 0; i < elements->length(); ++i) {
      all += kListSeparator;
      if (!elements->IsNull(i)) all += text(i);
    }
    return all;
  };
}

}  // namespace

bool is_list_type(Type::type type) {
  return type == Type::LIST || type == Type::LARGE_LIST || type == Type::FIXED_SIZE_LIST;
}

bool has_text(const arrow::DataType& type) {
  return !arrow::is_nested(type.id()) && type.id() != Type::EXTENSION &&
         type.id() != Type::RUN_END_ENCODED && !arrow::is_interval(type.id());
}

void append_texts(const arrow::Array& array, ParquetValues& values) {
  const ValueText text = is_list_type(array.type_id()) ? lists(array) : text_of(array);
  if (!text) throw DataError("values of the type " + array.type()->ToString() + " are not read");
  for (int64_t row = 0; row < array.length(); ++row) {
    const bool is_missing = array.type_id() == Type::NA || array.IsNull(row);
    if (!is_missing) values.bytes += text(row);
    values.ends.push_back(values.bytes.size());
    values.is_missing.push_back(is_missing);
  }
}

}  // namespace gallop::data

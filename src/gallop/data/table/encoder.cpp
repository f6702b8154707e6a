#include "gallop/data/table/encoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/table/scaling.h"
#include "gallop/data/table/values.h"

namespace gallop::data {

namespace {

constexpr double kDay = 86400;

double date_part(double seconds, const std::string& part) {
  const double days = std::floor(seconds / kDay);
  if (part == "days") return seconds / kDay;
  if (part == "seconds") return seconds - days * kDay;
  const std::chrono::sys_days day{std::chrono::days(static_cast<int64_t>(days))};
  if (part == "weekday") return std::chrono::weekday(day).c_encoding();
  const std::chrono::year_month_day date(day);
  return part == "month" ? static_cast<unsigned>(date.month()) : static_cast<unsigned>(date.day());
}

// Before fill and normalization.
double raw_value(const TableFeature& feature, double value) {
  if (feature.kind == "missing") return std::isnan(value) ? 1 : 0;
  if (std::isnan(value)) return feature.fill;
  return feature.kind == "date" ? date_part(value, feature.part) : value;
}

class Fitting {
 public:
  Fitting(const std::vector<int64_t>& rows, const EncoderOptions& options, TableEncoder& encoder)
      : rows_(rows), options_(options), encoder_(encoder) {}

  void add(const TableColumn& column) {
    if (column.type.kind == ColumnKind::kCategory) {
      add_category(column);
    } else {
      add_numbers(column);
    }
  }

  // Puts categories last.
  void finish() {
    for (TableFeature& feature : categories_) encoder_.features.push_back(std::move(feature));
  }

 private:
  void leave_out(const TableColumn& column, const std::string& reason) {
    encoder_.notes.push_back(
        fmt::format("column '{}' is left out: {}", printable(column.name), reason));
  }

  bool is_kept(const TableColumn& column) const {
    return options_.keeps_all || std::find(options_.kept.begin(), options_.kept.end(),
                                           column.name) != options_.kept.end();
  }

  void add_numbers(const TableColumn& column) {
    std::vector<double> values;
    for (const int64_t row : rows_) {
      const double value = column.numbers[static_cast<size_t>(row)];
      if (!std::isnan(value)) values.push_back(value);
    }
    if (values.empty()) return leave_out(column, "all of its values are missing");
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const bool has_missing = values.size() < rows_.size();
    if (!options_.keeps_all) {
      if (*least == *most && !has_missing) {
        return leave_out(column, fmt::format("all of its values are {}", values.front()));
      }
      if (!is_kept(column) && numbers_rows(column)) {
        return leave_out(column, "it numbers the rows; data.numbers keeps it");
      }
    }
    const bool is_constant = *least == *most && !options_.keeps_all;
    const double middle = median_of(values);
    if (column.type.kind == ColumnKind::kDate) {
      for (const char* part : {"days", "month", "day", "weekday", "seconds"}) {
        add_scaled(column, {.column = column.name,
                            .kind = "date",
                            .part = part,
                            .format = column.type.date_format,
                            .fill = date_part(middle, part)});
      }
    } else if (!is_constant) {
      const bool is_boolean = column.type.kind == ColumnKind::kBoolean;
      add_scaled(column, {.column = column.name,
                          .kind = is_boolean ? "boolean" : "number",
                          .part = {},
                          .format = is_boolean ? std::string() : column.type.number_format,
                          .fill = middle});
    }
    if (has_missing) {
      const MeanDeviation scale = given_or({0, 1});
      const bool is_boolean = column.type.kind == ColumnKind::kBoolean;
      push({.column = column.name,
            .kind = "missing",
            .part = is_boolean ? "boolean" : "",
            .format = column.type.kind == ColumnKind::kDate ? column.type.date_format
                                                            : column.type.number_format},
           scale);
      encoder_.features.back().bins = {(0 - scale.mean) / scale.deviation,
                                       (1 - scale.mean) / scale.deviation};
    }
  }

  // Whether the values are consecutive whole numbers in the order of the rows.
  static bool numbers_rows(const TableColumn& column) {
    constexpr size_t kFewest = 20;
    if (column.numbers.size() < kFewest) return false;
    for (size_t i = 1; i < column.numbers.size(); ++i) {
      if (!(column.numbers[i] == column.numbers[i - 1] + 1)) return false;
    }
    return true;
  }

  void add_scaled(const TableColumn& column, TableFeature feature) {
    std::vector<double> values;
    values.reserve(rows_.size());
    for (const int64_t row : rows_) {
      values.push_back(raw_value(feature, column.numbers[static_cast<size_t>(row)]));
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*least == *most && feature.kind == "date") return;
    MeanDeviation scale;
    if (feature.kind != "boolean") {
      if (options_.transform == "quantile") {
        feature.quantiles = transform_quantiles(values);
        for (double& value : values) value = quantile_transform(value, feature.quantiles);
      } else if (options_.transform == "standard") {
        scale = mean_deviation(values);
      }
    }
    scale = given_or(scale);
    // Inputs are fp32.
    for (double& value : values) {
      value = static_cast<float>((value - scale.mean) / scale.deviation);
    }
    feature.bins = bins_of(std::move(values), options_.bins);
    push(std::move(feature), scale);
  }

  static std::vector<double> transform_quantiles(std::vector<double> values) {
    constexpr int64_t kMost = 1000, kRowsOfEach = 30, kLeast = 10;
    const auto count = static_cast<int64_t>(values.size());
    std::sort(values.begin(), values.end());
    return quantiles_of(values, std::max(std::min(count / kRowsOfEach, kMost), kLeast));
  }

  void add_category(const TableColumn& column) {
    std::vector<int64_t> counts(column.values.size());
    int64_t known = 0;
    for (const int64_t row : rows_) {
      const int32_t code = column.codes[static_cast<size_t>(row)];
      if (code < 0) continue;
      ++counts[static_cast<size_t>(code)];
      ++known;
    }
    std::vector<std::string> values;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) values.push_back(column.values[i]);
    }
    if (values.empty()) return leave_out(column, "all of its values are missing");
    const bool has_missing = known < static_cast<int64_t>(rows_.size());
    if (values.size() == 1 && !has_missing) {
      return leave_out(column, fmt::format("all of its values are '{}'", printable(values[0])));
    }
    constexpr int64_t kFewest = 50;
    if (!is_kept(column) && known >= kFewest && 2 * static_cast<int64_t>(values.size()) > known) {
      return leave_out(
          column,
          fmt::format("{} of its {} values differ, as those of ids and texts do; data.categories "
                      "keeps it",
                      format_count(static_cast<int64_t>(values.size())), format_count(known)));
    }
    TableFeature feature{.column = column.name,
                         .kind = options_.is_one_hot ? "one-hot" : "category",
                         .part = {},
                         .format = {}};
    feature.categories = sorted_values(std::move(values));
    if (options_.is_one_hot) {
      push(std::move(feature), {0, 1});
    } else {
      categories_.push_back(std::move(feature));
    }
  }

  // The scale that is given for the next feature, if any.
  MeanDeviation given_or(MeanDeviation own) const {
    const auto& [mean, deviation] = options_.given;
    const size_t next = encoder_.features.size();
    if (next >= mean.size() || next >= deviation.size()) return own;
    return {mean[next], deviation[next]};
  }

  void push(TableFeature feature, MeanDeviation scale) {
    encoder_.features.push_back(std::move(feature));
    encoder_.normalization.mean.push_back(scale.mean);
    encoder_.normalization.deviation.push_back(scale.deviation);
  }

  const std::vector<int64_t>& rows_;
  const EncoderOptions& options_;
  TableEncoder& encoder_;
  std::vector<TableFeature> categories_;
};

// The index of each code of a column; 0 for values that the feature does not know.
std::vector<int64_t> indices_of(const TableColumn& column, const TableFeature& feature) {
  std::unordered_map<std::string, int64_t> known;
  for (size_t i = 0; i < feature.categories.size(); ++i) {
    known[feature.categories[i]] = static_cast<int64_t>(i) + 1;
  }
  std::vector<int64_t> indices;
  for (const std::string& value : column.values) {
    const auto found = known.find(value);
    indices.push_back(found == known.end() ? 0 : found->second);
  }
  return indices;
}

const TableColumn& column_of(const Table& table, const TableFeature& feature) {
  const TableColumn* const column = table.find(feature.column);
  if (column != nullptr) return *column;
  throw InternalError(fmt::format("a table without column '{}'", feature.column));
}

void write_numbers(const TableColumn& column, const TableFeature& feature, double mean,
                   double deviation, float* out, size_t stride) {
  for (const double raw : column.numbers) {
    const double value = raw_value(feature, raw);
    *out = static_cast<float>(feature.quantiles.empty()
                                  ? (value - mean) / deviation
                                  : quantile_transform(value, feature.quantiles));
    out += stride;
  }
}

}  // namespace

int64_t TableEncoder::width() const {
  size_t width = 0;
  for (const TableFeature& feature : features) width += feature.width();
  return static_cast<int64_t>(width);
}

int64_t TableEncoder::categories() const {
  return std::count_if(features.begin(), features.end(),
                       [](const TableFeature& feature) { return feature.is_category(); });
}

TableEncoder fit_encoder(const Table& table, const std::vector<size_t>& columns,
                         const std::vector<int64_t>& rows, const EncoderOptions& options) {
  TableEncoder encoder;
  Fitting fitting(rows, options, encoder);
  for (const size_t column : columns) fitting.add(table.columns[column]);
  fitting.finish();
  if (!encoder.features.empty()) return encoder;
  std::string reasons;
  for (const std::string& note : encoder.notes) reasons += "; " + note;
  throw DataError(fmt::format("{}: has no usable column besides the targets{}",
                              printable(table.files.front()), reasons));
}

EncodedRows encode(const Table& table, const std::vector<TableFeature>& features,
                   const Normalization& normalization) {
  size_t width = 0, categories = 0;
  for (const TableFeature& feature : features) {
    width += feature.width();
    categories += feature.is_category() ? 1 : 0;
  }
  const auto rows = static_cast<size_t>(table.rows());
  EncodedRows encoded{.numbers = std::vector<float>(rows * width),
                      .categories = std::vector<int64_t>(rows * categories)};
  size_t place = 0, category = 0;
  for (size_t i = 0; i < features.size(); ++i) {
    const TableFeature& feature = features[i];
    const TableColumn& column = column_of(table, feature);
    float* const out = encoded.numbers.data() + place;
    place += feature.width();
    if (!feature.is_category() && feature.kind != "one-hot") {
      write_numbers(column, feature, normalization.mean[i], normalization.deviation[i], out, width);
      continue;
    }
    const std::vector<int64_t> indices = indices_of(column, feature);
    for (size_t row = 0; row < rows; ++row) {
      const int32_t code = column.codes[row];
      const int64_t index = code < 0 ? 0 : indices[static_cast<size_t>(code)];
      if (feature.is_category()) {
        encoded.categories[row * categories + category] = index;
      } else {
        out[row * width + static_cast<size_t>(index)] = 1;
      }
    }
    if (feature.is_category()) ++category;
  }
  return encoded;
}

ColumnType column_type(const TableFeature& feature) {
  if (feature.is_category() || feature.kind == "one-hot") return {.kind = ColumnKind::kCategory};
  if (!feature.format.empty() && !number_format_named(feature.format)) {
    return {.kind = ColumnKind::kDate, .date_format = feature.format};
  }
  const bool is_boolean = feature.kind == "boolean" || feature.part == "boolean";
  return {.kind = is_boolean ? ColumnKind::kBoolean : ColumnKind::kNumber,
          .number_format = feature.format};
}

std::vector<std::string> sorted_values(std::vector<std::string> values) {
  std::sort(values.begin(), values.end());
  const auto number = [](const std::string& text) {
    return parse_value(text, NumberFormat::kPoint);
  };
  std::stable_sort(values.begin(), values.end(), [&](const auto& a, const auto& b) {
    const auto first = number(a), second = number(b);
    if (first && second) return *first < *second;
    return first.has_value() && !second.has_value();
  });
  return values;
}

}  // namespace gallop::data

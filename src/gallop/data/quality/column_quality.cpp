#include "gallop/data/quality/column_quality.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/text.h"

namespace gallop::data {

namespace {

// "data.ignore: [agent, 'no, yes']"
std::string ignore_line(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) {
    const bool is_plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == ' ';
    });
    std::string text = is_plain ? "" : "'";
    for (const char c : printable(name)) {
      text += c;
      if (!is_plain && c == '\'') text += c;
    }
    if (!is_plain) text += '\'';
    quoted.push_back(std::move(text));
  }
  return fmt::format("data.ignore: [{}]", fmt::join(quoted, ", "));
}

void add_columns(const char* kind, const char* title, const std::vector<std::string>& names,
                 const char* what, DataQuality& quality) {
  if (names.empty()) return;
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(fmt::format("'{}'", printable(name)));
  quality.findings.push_back(
      {.kind = kind,
       .title = title,
       .text = fmt::format("{} {}: {}", names.size() == 1 ? "a column has" : "columns have", what,
                           join_names(shown, "and")),
       .remedy = ignore_line(names)});
}

}  // namespace

ColumnFacts facts_of(const TableColumn& column, const std::vector<int64_t>& rows) {
  ColumnFacts facts{.name = column.name, .rows = static_cast<int64_t>(rows.size())};
  std::optional<double> first;
  facts.is_constant = true;
  for (const int64_t row : rows) {
    const auto at = static_cast<size_t>(row);
    const double value = column.numbers.empty() ? double(column.codes[at]) : column.numbers[at];
    if (column.numbers.empty() ? value < 0 : std::isnan(value)) {
      ++facts.missing;
      continue;
    }
    if (!first) first = value;
    facts.is_constant = facts.is_constant && value == *first;
  }
  return facts;
}

void check_columns(const std::vector<ColumnFacts>& columns, DataQuality& quality) {
  quality.checks.insert(quality.checks.end(),
                        {"empty columns", "constant columns", "missing values"});
  std::vector<std::string> empty, constant, mostly;
  std::vector<ColumnFacts> missing;
  for (const ColumnFacts& one : columns) {
    if (one.missing == one.rows) {
      empty.push_back(one.name);
      continue;
    }
    if (one.is_constant) constant.push_back(one.name);
    if (one.missing > 0) missing.push_back(one);
    if (2 * one.missing > one.rows) mostly.push_back(one.name);
  }
  add_columns("empty-columns", "Empty columns", empty, "no values", quality);
  add_columns("constant-columns", "Constant columns", constant, "the same value in all rows",
              quality);
  if (missing.empty()) return;
  std::stable_sort(missing.begin(), missing.end(), [](const ColumnFacts& a, const ColumnFacts& b) {
    return a.missing > b.missing;
  });
  std::vector<std::string> shown;
  for (const ColumnFacts& one : missing) {
    shown.push_back(
        fmt::format("'{}' {} ({:.1f} %)", printable(one.name), format_count(one.missing),
                    100 * static_cast<double>(one.missing) / static_cast<double>(one.rows)));
  }
  quality.findings.push_back(
      {.kind = "missing-values",
       .title = "Missing values",
       .text = fmt::format("of {} training rows, values are missing in {}",
                           format_count(missing.front().rows), join_names(shown, "and")),
       .remedy = mostly.empty() ? "" : ignore_line(mostly)});
}

}  // namespace gallop::data

#include "gallop/data/table/table_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_file.h"
#include "gallop/data/skip_summary.h"

namespace gallop::data {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string kind_text(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kNumber: return "number";
    case ColumnKind::kBoolean: return "truth value";
    case ColumnKind::kDate: return "date";
    case ColumnKind::kCategory:
    case ColumnKind::kIgnored: return "text";
  }
  return {};
}

}  // namespace

std::string place_of_row(const std::vector<std::string>& files, const std::vector<int32_t>& file_of,
                         const std::vector<int64_t>& lines, int64_t row) {
  const auto i = static_cast<size_t>(row);
  return fmt::format("{}:{}", files[file_of.empty() ? 0 : static_cast<size_t>(file_of[i])],
                     lines[i]);
}

const TableColumn* Table::find(const std::string& name) const {
  for (const TableColumn& column : columns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

TableReader::TableReader(const std::vector<std::string>& files, const TableOptions& options)
    : options_(options), rows_(open_rows(files, options)) {}

void TableReader::scan_only(const std::vector<std::string>& names) {
  options_.unscanned.clear();
  for (const std::string& name : this->names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      options_.unscanned.push_back(name);
    }
  }
}

namespace {

/// What is still possible for a column.
struct Candidates {
  std::array<bool, std::size(kNumberFormats)> formats = {true, true, true, true};
  std::array<int64_t, std::size(kDateFormats)> dates{};  // The values of each format.
  bool is_boolean = true, has_code = false, has_marks = false;
  int64_t values = 0, numbers = 0;
  /// The first value that is no number, or does not fit the marks of those before it, and where it
  /// is.
  std::string text, text_place;
  bool has_text = false, text_is_number = false, has_lists = false;
  /// For each date format, the first value that does not have it, and where it is.
  std::array<std::string, std::size(kDateFormats)> no_date{}, no_date_place{};
  std::set<std::string, std::less<>> distinct;
  bool has_many = false;

  void add(const Cell& cell, const RowReader& rows) {
    constexpr size_t kMany = 20;
    ++values;
    has_lists = has_lists || cell.is_list;
    if (!has_many && !distinct.contains(cell.text)) {
      has_many = distinct.size() == kMany;
      if (!has_many) distinct.emplace(cell.text);
    }
    const bool has_mark = cell.text.find_first_of(".,") != std::string_view::npos;
    std::array<bool, std::size(kNumberFormats)> can{};
    for (size_t i = 0; i < can.size(); ++i) {
      // With neither mark, all formats agree.
      can[i] = i > 0 && !has_mark ? can[0] : parse_value(cell.text, kNumberFormats[i]).has_value();
    }
    const auto any = [](const auto& fits) {
      return std::find(fits.begin(), fits.end(), true) != fits.end();
    };
    const bool is_number = any(can);
    if (is_number) {
      ++numbers;
      has_marks = has_marks || has_mark;
      for (size_t i = 0; i < can.size(); ++i) formats[i] = formats[i] && can[i];
      has_code = has_code || is_code(cell.text);
    }
    if (!has_text && !(is_number && any(formats))) {
      has_text = true;
      text_is_number = is_number;
      text_place = rows.place(cell);
      text = std::string(cell.text);
    }
    if (is_boolean && !parse_boolean(cell.text)) is_boolean = false;
    for (size_t i = 0; i < std::size(kDateFormats); ++i) {
      if (!is_number && parse_date(cell.text, kDateFormats[i])) {
        ++dates[i];
      } else if (no_date_place[i].empty()) {
        no_date_place[i] = rows.place(cell);
        no_date[i] = std::string(cell.text);
      }
    }
  }
};

// The formats that fit all numbers, the one of the file's decimal mark first.
std::optional<NumberFormat> format_of(const Candidates& column, bool has_decimal_comma) {
  using F = NumberFormat;
  static constexpr F kPointFirst[] = {F::kPoint, F::kPointThousands, F::kComma, F::kCommaThousands};
  static constexpr F kCommaFirst[] = {F::kComma, F::kCommaThousands, F::kPoint, F::kPointThousands};
  for (const F format : has_decimal_comma ? kCommaFirst : kPointFirst) {
    if (column.formats[static_cast<size_t>(format)]) return format;
  }
  return std::nullopt;
}

// The one of kDateFormats that most values have.
size_t date_format_of(const Candidates& column, bool day_first) {
  const auto& [year, month, day] = column.dates;
  const size_t other = day > month || (day == month && day_first) ? 2 : 1;
  return column.dates[other] > year ? other : 0;
}

// Whether a column's numbers can only be read with a decimal comma, or a separator says so.
bool shows_decimal_comma(const Candidates& column, bool has_semicolons) {
  const auto can = [&](NumberFormat format) { return column.formats[static_cast<size_t>(format)]; };
  if (column.numbers == 0 || can(NumberFormat::kPoint)) return false;
  const bool can_comma = can(NumberFormat::kComma) || can(NumberFormat::kCommaThousands);
  return can_comma && (!can(NumberFormat::kPointThousands) || has_semicolons);
}

// A column that is likely one of dates or numbers, but has other values: these are mistakes if they
// are few. `date`: index of the likely date format.
void find_mistake(const Candidates& column, size_t date, const std::string& name,
                  ColumnScan& scan) {
  constexpr double kMistakesBelow = 0.1;
  const char* const remedy =
      "correct it, name the text in data.missing if it stands for a missing value";
  const auto are_few = [&](int64_t others) {
    return static_cast<double>(others) < kMistakesBelow * static_cast<double>(column.values);
  };
  if (are_few(column.values - column.dates[date])) {
    scan.likely = {.kind = ColumnKind::kDate, .date_format = scan.date_format};
    scan.mistake = fmt::format(
        "{}: column '{}' is '{}', but nearly all of its values are dates; {}, or name the column "
        "in data.categories",
        column.no_date_place[date], name, shown_value(column.no_date[date]), remedy);
  } else if (are_few(column.values - column.numbers) && !column.has_code) {
    scan.likely = {.kind = ColumnKind::kNumber, .number_format = scan.type.number_format};
    scan.mistake =
        fmt::format("{}: column '{}' is '{}', but {}, or name the column in data.categories",
                    column.text_place, name, shown_value(column.text),
                    column.text_is_number
                        ? std::string("the numbers before it have another decimal mark; correct it")
                        : fmt::format("nearly all of its values are numbers; {}", remedy));
  }
}

}  // namespace

const std::vector<ColumnScan>& TableReader::scan() {
  if (!scans_.empty()) return scans_;
  std::vector<Candidates> columns(names().size());
  std::vector<bool> is_scanned(names().size(), true);
  for (size_t i = 0; i < names().size(); ++i) {
    const auto& without = options_.unscanned;
    is_scanned[i] = !names()[i].empty() &&
                    std::find(without.begin(), without.end(), names()[i]) == without.end();
  }
  rows_->rewind(is_scanned);
  std::vector<Cell> cells;
  while (rows_->next(cells, nullptr)) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (is_scanned[i] && !is_missing_value(cells[i].text, options_.missing)) {
        columns[i].add(cells[i], *rows_);
      }
    }
  }
  bool has_decimal_comma = options_.decimal == "comma";
  if (options_.decimal == "auto") {
    has_decimal_comma = std::any_of(columns.begin(), columns.end(), [&](const Candidates& column) {
      return shows_decimal_comma(column, rows_->has_semicolons());
    });
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    const Candidates& column = columns[i];
    ColumnScan& scan = scans_.emplace_back();
    scan.values = column.values;
    scan.numbers = column.numbers;
    scan.has_lists = column.has_lists;
    const size_t date = date_format_of(column, options_.day_first);
    scan.date_format = kDateFormats[date];
    scan.has_ambiguous_dates = date != 0 && column.dates[1] == column.dates[2];
    if (!column.has_many) scan.distinct.assign(column.distinct.begin(), column.distinct.end());
    const auto format = format_of(column, has_decimal_comma);
    scan.format = format.value_or(has_decimal_comma ? NumberFormat::kComma : NumberFormat::kPoint);
    scan.fits = column.formats;
    if (!is_scanned[i]) {
      scan.type.kind = ColumnKind::kIgnored;
      continue;
    }
    // Without any mark, other files show the format.
    if (column.has_marks || has_decimal_comma) {
      scan.type.number_format = kNumberFormatNames[static_cast<size_t>(scan.format)];
    }
    if (column.values == 0) {
      scan.type.kind = ColumnKind::kCategory;
      continue;
    }
    if (column.numbers == column.values && format) {
      scan.type.kind = column.has_code ? ColumnKind::kCategory : ColumnKind::kNumber;
      continue;
    }
    if (column.is_boolean) {
      scan.type.kind = ColumnKind::kBoolean;
    } else if (column.dates[date] == column.values) {
      scan.type = {.kind = ColumnKind::kDate, .date_format = scan.date_format};
    } else {
      scan.type.kind = ColumnKind::kCategory;
      find_mistake(column, date, printable(names()[i]), scan);
    }
  }
  return scans_;
}

// The format of the training file or, if this file's numbers do not have it, the one of the same
// decimal mark, or else their own.
NumberFormat TableReader::format_for(const ColumnType& type, size_t column) const {
  const ColumnScan& scan = scans_[column];
  const auto known = number_format_named(type.number_format);
  if (!known) return scan.format;
  const auto wanted = static_cast<size_t>(*known);
  const size_t other = wanted ^ 1;  // With thousands marks, or without them.
  if (scan.fits[wanted]) return kNumberFormats[wanted];
  return scan.fits[other] ? kNumberFormats[other] : scan.format;
}

std::string TableReader::wrong_value(const Cell& cell, size_t column,
                                     const ColumnType& type) const {
  const std::string place = rows_->place(cell);
  if (cell.is_list) {
    return fmt::format(
        "{}: column '{}' is a list, which is not a table value; name the column in "
        "data.ignore",
        place, printable(names()[column]));
  }
  if (is_missing_value(cell.text, options_.missing)) {
    return fmt::format("{}: column '{}' has no value", place, printable(names()[column]));
  }
  return fmt::format(
      "{}: column '{}' is '{}', which is not a {}; name the column in data.ignore or "
      "data.categories",
      place, printable(names()[column]), shown_value(cell.text), kind_text(type.kind));
}

// False if the value does not fit.
bool TableReader::append(const Cell& cell, const ColumnType& type, NumberFormat format,
                         TableColumn& column) const {
  const bool is_missing = is_missing_value(cell.text, options_.missing);
  if (cell.is_list) return false;
  if (is_missing) {
    if (type.is_required) return false;
    column.numbers.push_back(kNan);
    return true;
  }
  std::optional<double> value;
  if (type.kind == ColumnKind::kNumber) {
    value = parse_value(cell.text, format);
  } else if (type.kind == ColumnKind::kDate) {
    value = parse_date(cell.text, type.date_format);
    column.has_times = column.has_times || (value && std::fmod(*value, 86400) != 0);
  } else if (const auto truth = parse_boolean(cell.text)) {
    value = *truth ? 1 : 0;
  } else if (cell.text == "0" || cell.text == "1") {
    value = cell.text == "1" ? 1 : 0;
  }
  if (value) column.numbers.push_back(*value);
  return value.has_value();
}

Table TableReader::read(const std::vector<ColumnType>& types, SkipPolicy& skips) {
  scan();
  Table table{.files = files(), .columns = {}};
  std::vector<std::unordered_map<std::string, int32_t>> codes(names().size());
  std::vector<bool> is_read;
  std::vector<NumberFormat> formats;
  for (size_t i = 0; i < names().size(); ++i) {
    table.columns.push_back({.name = names()[i], .type = types[i]});
    is_read.push_back(types[i].kind != ColumnKind::kIgnored);
    formats.push_back(format_for(types[i], i));
  }
  rows_->rewind(is_read);
  std::vector<Cell> cells;
  std::vector<size_t> with_new_value;  // Columns of the row.
  while (rows_->next(cells, &skips)) {
    size_t done = 0;
    with_new_value.clear();
    for (; done < cells.size(); ++done) {
      TableColumn& column = table.columns[done];
      const ColumnType& type = types[done];
      const Cell& cell = cells[done];
      if (type.kind == ColumnKind::kIgnored) continue;
      if (type.kind != ColumnKind::kCategory) {
        if (append(cell, type, formats[done], column)) continue;
        break;
      }
      // An empty list is a value: no label.
      const bool is_missing = !cell.is_list && is_missing_value(cell.text, options_.missing);
      if ((is_missing && type.is_required) || (cell.is_list && !type.allows_lists)) break;
      if (is_missing) {
        column.codes.push_back(-1);
        continue;
      }
      const auto [known, is_new] = codes[done].try_emplace(
          std::string(cell.text), static_cast<int32_t>(column.values.size()));
      if (is_new) {
        column.values.push_back(known->first);
        with_new_value.push_back(done);
      }
      column.codes.push_back(known->second);
    }
    if (done == cells.size()) {
      table.lines.push_back(rows_->line());
      if (files().size() > 1) table.file_of.push_back(static_cast<int32_t>(rows_->file_index()));
      continue;
    }
    for (size_t i = 0; i < done; ++i) {
      TableColumn& column = table.columns[i];
      if (types[i].kind == ColumnKind::kIgnored) continue;
      if (types[i].kind == ColumnKind::kCategory) {
        column.codes.pop_back();
      } else {
        column.numbers.pop_back();
      }
    }
    for (const size_t i : with_new_value) {
      codes[i].erase(table.columns[i].values.back());
      table.columns[i].values.pop_back();
    }
    skips.add(fmt::format("value that is not a {}", kind_text(types[done].kind)),
              [&] { return wrong_value(cells[done], done, types[done]); });
  }
  if (table.rows() == 0) {
    throw DataError(fmt::format("{}: has no {}rows{}", printable(file()),
                                skips.counts().empty() ? "" : "usable ", skip_summary(skips)));
  }
  return table;
}

}  // namespace gallop::data

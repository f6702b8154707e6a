#include "gallop/data/table/csv_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/csv_reader.h"
#include "gallop/data/gzip.h"
#include "gallop/data/text.h"

namespace gallop::data {

namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 34;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void require_utf8(const std::string& file, std::string_view content) {
  for (size_t at = 0; at < content.size();) {
    if (static_cast<unsigned char>(content[at]) < 0x80) {
      if (content[at] == '\0') {
        throw DataError(csv_place(file, content, at) + ": a zero byte; the file is no text");
      }
      ++at;
      continue;
    }
    const size_t length = character_length(content, at);
    if (length == 0) {
      throw DataError(fmt::format(
          "{}: not UTF-8 (byte 0x{:02x}); convert the file, for example: iconv -f LATIN1 -t UTF-8",
          csv_place(file, content, at), static_cast<unsigned char>(content[at])));
    }
    at += length;
  }
}

bool is_any_number(std::string_view text) {
  return std::any_of(std::begin(kNumberFormats), std::end(kNumberFormats),
                     [&](NumberFormat format) { return parse_value(text, format).has_value(); });
}

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

std::string read_table_file(const std::string& file) {
  std::string content = read_file(file, kMaxFileBytes);
  if (looks_like_gzip(content)) {
    const Bytes bytes = gunzip(content, printable(file), kMaxFileBytes);
    content.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  if (content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF")) {
    throw DataError(
        fmt::format("{0}: the file is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {0} > utf8.csv",
                    printable(file)));
  }
  if (content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);
  if (content.empty()) throw DataError(printable(file) + ": the file is empty");
  return content;
}

const TableColumn* Table::find(const std::string& name) const {
  for (const TableColumn& column : columns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

CsvTable::CsvTable(std::string file, CsvOptions options)
    : file_(std::move(file)), content_(read_table_file(file_)), options_(std::move(options)) {
  require_utf8(file_, content_);
  read_names();
}

void CsvTable::read_names() {
  // Excel's declaration of the separator.
  if (content_.starts_with("sep=") && content_.size() > 5 &&
      (content_[5] == '\n' || content_[5] == '\r')) {
    if (options_.separator == '\0') options_.separator = content_[4];
    first_row_ = content_.find('\n', 5) == std::string::npos ? 6 : content_.find('\n', 5) + 1;
    lines_before_ = 1;
  }
  const std::string_view all(content_);
  if (options_.separator == '\0') options_.separator = detect_separator(all.substr(first_row_));
  CsvRecords records(file_, all, options_.separator, first_row_);
  std::vector<CsvCell> cells;
  if (!records.next(cells)) throw DataError(printable(file_) + ": the file has no lines");
  bool has_names = options_.header != "no";
  if (options_.header == "auto") {
    has_names = !std::all_of(cells.begin(), cells.end(), [&](const CsvCell& cell) {
      return is_any_number(cell.text) || is_missing_value(cell.text, options_.missing);
    });
  }
  if (!has_names) {
    for (size_t i = 0; i < cells.size(); ++i) names_.push_back(fmt::format("column_{}", i + 1));
    if (options_.header == "auto") {
      notes_.push_back(fmt::format(
          "{}: the first line has no names but values, so the columns are called column_1 to "
          "column_{}; data.header: yes takes it as names",
          printable(file_), names_.size()));
    }
    return;
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < cells.size(); ++i) {
    std::string name(cells[i].text);
    if (name.empty() && i == 0 && cells.size() > 1) {
      // As pandas and R write the names of the rows.
      has_row_numbers_ = true;
      names_.push_back(std::move(name));
      continue;
    }
    if (name.empty()) {
      throw DataError(
          fmt::format("{}: column {} has no name", csv_place(file_, all, cells[i].offset), i + 1));
    }
    if (!seen.insert(name).second) {
      throw DataError(fmt::format("{}: two columns are named '{}'",
                                  csv_place(file_, all, cells[i].offset), printable(name)));
    }
    names_.push_back(std::move(name));
  }
  lines_before_ += records.lines();
  first_row_ = records.offset();
  if (has_row_numbers_) {
    notes_.push_back(fmt::format(
        "{}: the first column has no name and is ignored, as it contains the names of the rows",
        printable(file_)));
  }
}

size_t CsvTable::find(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end() || name.empty()) refuse_column(file_, name, names_);
  return static_cast<size_t>(found - names_.begin());
}

bool CsvTable::row_fits(const std::vector<CsvCell>& cells, int64_t line, SkipPolicy* skips) const {
  if (cells.size() == names_.size()) return true;
  if (skips != nullptr) {
    const size_t first = std::min(cells.size(), names_.size());
    const size_t offset = first < cells.size() ? cells[first].offset : cells.back().offset;
    skips->add("line with another number of fields",
               fmt::format("{}: {} fields in line {}, but there are {} columns",
                           csv_place(file_, content_, offset), cells.size(), line, names_.size()));
  }
  return false;
}

namespace {

/// What is still possible for a column.
struct Candidates {
  bool formats[std::size(kNumberFormats)] = {true, true, true, true};
  bool dates[std::size(kDateFormats)] = {true, true, true};
  bool is_boolean = true, has_code = false, has_plain = false;
  int64_t values = 0, numbers = 0;
  size_t first_text = 0;  ///< Offset of the first value that is no number.
  bool has_text = false;
  std::string text;
  std::set<std::string, std::less<>> distinct;
  bool has_many = false;

  void add(const CsvCell& cell) {
    constexpr size_t kMany = 20;
    ++values;
    if (!has_many && !distinct.contains(cell.text)) {
      has_many = distinct.size() == kMany;
      if (!has_many) distinct.emplace(cell.text);
    }
    bool is_number = false;
    for (size_t i = 0; i < std::size(kNumberFormats); ++i) {
      // With neither mark, all formats agree.
      if (i > 0 && is_number && cell.text.find_first_of(".,") == std::string_view::npos) break;
      const bool can = parse_value(cell.text, kNumberFormats[i]).has_value();
      is_number = is_number || can;
      if (!can && cell.text.find_first_of(".,") != std::string_view::npos) formats[i] = false;
    }
    if (is_number) {
      ++numbers;
      has_code = has_code || is_code(cell.text);
    } else if (!has_text) {
      has_text = true;
      first_text = cell.offset;
      text = std::string(cell.text);
    }
    if (is_boolean && !parse_boolean(cell.text)) is_boolean = false;
    for (size_t i = 0; i < std::size(kDateFormats); ++i) {
      if (dates[i] && !parse_date(cell.text, kDateFormats[i])) dates[i] = false;
    }
  }
};

// Of the formats that fit all numbers, the one of the file's decimal mark first.
std::optional<NumberFormat> format_of(const Candidates& column, bool has_decimal_comma) {
  using F = NumberFormat;
  static constexpr F kPointFirst[] = {F::kPoint, F::kPointThousands, F::kComma, F::kCommaThousands};
  static constexpr F kCommaFirst[] = {F::kComma, F::kCommaThousands, F::kPoint, F::kPointThousands};
  for (const F format : has_decimal_comma ? kCommaFirst : kPointFirst) {
    if (column.formats[static_cast<size_t>(format)]) return format;
  }
  return std::nullopt;
}

// Whether a column's numbers can only be read with a decimal comma, or a separator says so.
bool shows_decimal_comma(const Candidates& column, char separator) {
  const auto can = [&](NumberFormat format) { return column.formats[static_cast<size_t>(format)]; };
  if (column.numbers == 0 || can(NumberFormat::kPoint)) return false;
  const bool can_comma = can(NumberFormat::kComma) || can(NumberFormat::kCommaThousands);
  return can_comma && (!can(NumberFormat::kPointThousands) || separator == ';');
}

}  // namespace

const std::vector<ColumnScan>& CsvTable::scan() {
  if (!scans_.empty()) return scans_;
  std::vector<Candidates> columns(names_.size());
  std::vector<bool> is_scanned(names_.size(), true);
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto& without = options_.unscanned;
    is_scanned[i] = std::find(without.begin(), without.end(), names_[i]) == without.end();
  }
  if (has_row_numbers_) is_scanned[0] = false;
  CsvRecords records(file_, content_, options_.separator, first_row_);
  std::vector<CsvCell> cells;
  while (records.next(cells)) {
    if (!row_fits(cells, 0, nullptr)) continue;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (is_scanned[i] && !is_missing_value(cells[i].text, options_.missing)) {
        columns[i].add(cells[i]);
      }
    }
  }
  bool has_decimal_comma = options_.decimal == "comma";
  if (options_.decimal == "auto") {
    has_decimal_comma = std::any_of(columns.begin(), columns.end(), [&](const Candidates& column) {
      return shows_decimal_comma(column, options_.separator);
    });
  }
  constexpr double kMistakesBelow = 0.1;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Candidates& column = columns[i];
    ColumnScan& scan = scans_.emplace_back();
    scan.values = column.values;
    scan.numbers = column.numbers;
    if (!column.has_many) scan.distinct.assign(column.distinct.begin(), column.distinct.end());
    const auto format = format_of(column, has_decimal_comma);
    scan.format = format.value_or(has_decimal_comma ? NumberFormat::kComma : NumberFormat::kPoint);
    if (!is_scanned[i]) {
      scan.type.kind = ColumnKind::kIgnored;
      continue;
    }
    if (column.values == 0) {
      scan.type.kind = ColumnKind::kCategory;
      continue;
    }
    if (column.numbers == column.values && format) {
      scan.type.kind = column.has_code ? ColumnKind::kCategory : ColumnKind::kNumber;
      continue;
    }
    const auto texts = static_cast<double>(column.values - column.numbers);
    const auto date = std::find(std::begin(column.dates), std::end(column.dates), true);
    if (column.is_boolean) {
      scan.type.kind = ColumnKind::kBoolean;
    } else if (date != std::end(column.dates)) {
      const bool is_ambiguous = column.dates[1] && column.dates[2];
      scan.has_ambiguous_dates = is_ambiguous && !column.dates[0];
      const bool takes_day = scan.has_ambiguous_dates && options_.day_first;
      scan.type = {.kind = ColumnKind::kDate,
                   .date_format = kDateFormats[takes_day ? 2 : date - std::begin(column.dates)]};
    } else {
      scan.type.kind = ColumnKind::kCategory;
      if (texts < kMistakesBelow * static_cast<double>(column.values) && !column.has_code) {
        scan.mistake = fmt::format(
            "{}: column '{}' is '{}', but nearly all of its values are numbers; correct it, name "
            "the text in data.missing if it stands for a missing value, or name the column in "
            "data.categories",
            csv_place(file_, content_, column.has_text ? column.first_text : 0),
            printable(names_[i]), printable(column.text));
      }
    }
  }
  return scans_;
}

std::string CsvTable::wrong_value(const CsvCell& cell, size_t column,
                                  const ColumnType& type) const {
  const std::string place = csv_place(file_, content_, cell.offset);
  if (is_missing_value(cell.text, options_.missing)) {
    return fmt::format("{}: column '{}' has no value", place, printable(names_[column]));
  }
  return fmt::format(
      "{}: column '{}' is '{}', which is no {}; name the column in data.ignore or "
      "data.categories, or leave such rows out with data.on_error: skip",
      place, printable(names_[column]), printable(cell.text), kind_text(type.kind));
}

// False if the value does not fit.
bool CsvTable::append(const CsvCell& cell, const ColumnType& type, NumberFormat format,
                      TableColumn& column) const {
  const bool is_missing = is_missing_value(cell.text, options_.missing);
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

Table CsvTable::read(const std::vector<ColumnType>& types, SkipPolicy& skips) {
  scan();
  Table table{.file = file_, .columns = {}};
  std::vector<std::unordered_map<std::string, int32_t>> codes(names_.size());
  for (size_t i = 0; i < names_.size(); ++i) {
    table.columns.push_back({.name = names_[i], .type = types[i]});
  }
  CsvRecords records(file_, content_, options_.separator, first_row_);
  std::vector<CsvCell> cells;
  while (records.next(cells)) {
    const int64_t line = records.line() + lines_before_;
    if (!row_fits(cells, line, &skips)) continue;
    size_t done = 0;
    for (; done < cells.size(); ++done) {
      TableColumn& column = table.columns[done];
      const ColumnType& type = types[done];
      const CsvCell& cell = cells[done];
      if (type.kind == ColumnKind::kIgnored) continue;
      if (type.kind != ColumnKind::kCategory) {
        if (append(cell, type, scans_[done].format, column)) continue;
        break;
      }
      const bool is_missing = is_missing_value(cell.text, options_.missing);
      if (is_missing && type.is_required) break;
      if (is_missing) {
        column.codes.push_back(-1);
        continue;
      }
      const auto [known, is_new] = codes[done].try_emplace(
          std::string(cell.text), static_cast<int32_t>(column.values.size()));
      if (is_new) column.values.push_back(known->first);
      column.codes.push_back(known->second);
    }
    if (done == cells.size()) {
      table.lines.push_back(line);
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
    skips.add(fmt::format("value that is no {}", kind_text(types[done].kind)),
              wrong_value(cells[done], done, types[done]));
  }
  if (table.rows() == 0) throw DataError(printable(file_) + ": has no rows");
  return table;
}

}  // namespace gallop::data

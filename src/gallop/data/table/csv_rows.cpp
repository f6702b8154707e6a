#include "gallop/data/table/csv_rows.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_file.h"
#include "gallop/data/table/values.h"
#include "gallop/data/text.h"

namespace gallop::data {

namespace {

void require_utf8(const std::string& file, std::string_view content) {
  for (size_t at = 0; at < content.size();) {
    if (static_cast<unsigned char>(content[at]) < 0x80) {
      if (content[at] == '\0') {
        throw DataError(csv_place(file, content, at) + ": a zero byte; the file is not text");
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

}  // namespace

CsvRows::CsvRows(std::string file, TableOptions options)
    : content_(read_data_file(file)), options_(std::move(options)), records_(content_, {}) {
  files_ = {std::move(file)};
  if (!options_.is_raw) require_utf8(files_[0], content_);
  choose_separator();
  read_names();
  records_ = records_from(first_row_);
}

CsvRecords CsvRows::records_from(size_t offset) const {
  return {content_,
          {.file = files_[0],
           .separator = options_.separator,
           .keeps_blanks = options_.is_raw,
           .offset = offset}};
}

void CsvRows::choose_separator() {
  // Excel's declaration of the separator.
  if (content_.starts_with("sep=") && content_.size() > 5 &&
      (content_[5] == '\n' || content_[5] == '\r')) {
    if (options_.separator == '\0') options_.separator = content_[4];
    first_row_ = content_.find('\n', 5) == std::string::npos ? 6 : content_.find('\n', 5) + 1;
    lines_before_ = 1;
  }
  if (options_.separator == '\0') {
    options_.separator = detect_separator(std::string_view(content_).substr(first_row_));
  }
}

void CsvRows::read_names() {
  CsvRecords records = records_from(first_row_);
  std::vector<Cell> cells;
  if (!records.next(cells)) throw DataError(printable(files_[0]) + ": the file has no lines");
  bool has_names = options_.header != "no";
  if (options_.header == "auto") {
    has_names = !std::all_of(cells.begin(), cells.end(), [&](const Cell& cell) {
      return is_any_number(cell.text) || is_missing_value(cell.text, options_.missing);
    });
  }
  if (!has_names) {
    for (size_t i = 0; i < cells.size(); ++i) names_.push_back(fmt::format("column_{}", i + 1));
    if (options_.header == "auto") {
      notes_.push_back(fmt::format(
          "{}: the first line has no names but values, so the columns are called column_1 to "
          "column_{}; data.header: yes takes it as names",
          printable(files_[0]), names_.size()));
    }
    return;
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < cells.size(); ++i) {
    std::string name(cells[i].text);
    if (name.empty() && i == 0 && cells.size() > 1 && !options_.is_raw) {
      // As pandas and R write the names of the rows.
      notes_.push_back(fmt::format(
          "{}: the first column has no name and is ignored, as it contains the names of the rows",
          printable(files_[0])));
    } else if (name.empty()) {
      throw DataError(fmt::format("{}: column {} has no name", place(cells[i]), i + 1));
    } else if (!seen.insert(name).second) {
      throw DataError(
          fmt::format("{}: two columns are named '{}'", place(cells[i]), printable(name)));
    }
    names_.push_back(std::move(name));
  }
  lines_before_ += records.lines();
  first_row_ = records.offset();
}

void CsvRows::rewind(const std::vector<bool>& /*selected*/) { records_ = records_from(first_row_); }

bool CsvRows::next(std::vector<Cell>& cells, SkipPolicy* skips) {
  while (records_.next(cells)) {
    if (cells.size() == names_.size()) return true;
    if (skips == nullptr) continue;
    const size_t first = std::min(cells.size(), names_.size());
    const Cell& cell = first < cells.size() ? cells[first] : cells.back();
    skips->add("line with another number of fields", [&] {
      return fmt::format("{}: {} fields in line {}, but there are {} columns", place(cell),
                         cells.size(), line(), names_.size());
    });
  }
  return false;
}

std::string CsvRows::place(const Cell& cell) const {
  return csv_place(files_[0], content_, cell.offset);
}

}  // namespace gallop::data

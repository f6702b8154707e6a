#include "gallop/data/table/csv_records.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

constexpr size_t kSampleBytes = 1 << 16;
constexpr int64_t kSampleRecords = 200;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// The number of fields of each of the first records.
std::vector<size_t> field_counts(std::string_view content, char separator) {
  const std::string_view sample = content.substr(0, kSampleBytes);
  CsvRecords records(sample, {.file = {}, .separator = separator});
  std::vector<Cell> cells;
  std::vector<size_t> counts;
  try {
    while (static_cast<int64_t>(counts.size()) < kSampleRecords && records.next(cells)) {
      // The sample may end within a record.
      if (sample.size() < content.size() && records.offset() == sample.size()) break;
      counts.push_back(cells.size());
    }
  } catch (const DataError&) {
    // With this separator the quotes make no sense, or the sample ends within one.
  }
  return counts;
}

}  // namespace

std::string csv_place(std::string_view file, std::string_view content, size_t offset) {
  int64_t line = 1;
  size_t begin = 0;
  for (size_t i = 0; i < offset && i < content.size(); ++i) {
    const bool is_crlf = content[i] == '\r' && i + 1 < content.size() && content[i + 1] == '\n';
    if (content[i] != '\n' && (content[i] != '\r' || is_crlf)) continue;
    ++line;
    begin = i + 1;
  }
  return fmt::format("{}:{}:{}", printable(file), line, offset - begin + 1);
}

void CsvRecords::skip_blanks() {
  while (at_ < content_.size() && is_blank(content_[at_]) && content_[at_] != format_.separator)
    ++at_;
}

void CsvRecords::end_line() {
  if (content_[at_] == '\r' && at_ + 1 < content_.size() && content_[at_ + 1] == '\n') ++at_;
  ++at_;
  ++next_line_;
}

bool CsvRecords::next(std::vector<Cell>& cells) {
  while (at_ < content_.size()) {
    unescaped_.clear();
    cells.clear();
    line_ = next_line_;
    while (true) {
      cells.push_back(read_cell());
      if (at_ >= content_.size()) break;
      if (content_[at_] != format_.separator) {
        end_line();
        break;
      }
      ++at_;
      if (at_ >= content_.size()) {
        cells.push_back({.text = {}, .offset = at_});
        break;
      }
    }
    const bool is_empty = cells.size() == 1 && cells[0].text.empty() && !cells[0].is_quoted;
    if (!is_empty) return true;
  }
  return false;
}

Cell CsvRecords::read_cell() {
  if (!format_.keeps_blanks) skip_blanks();
  if (at_ < content_.size() && content_[at_] == '"') return read_quoted();
  const size_t begin = at_;
  while (at_ < content_.size() && content_[at_] != format_.separator && !ends_line()) ++at_;
  size_t end = at_;
  while (!format_.keeps_blanks && end > begin && is_blank(content_[end - 1])) --end;
  return {.text = content_.substr(begin, end - begin), .offset = begin};
}

Cell CsvRecords::read_quoted() {
  const size_t quote = at_++;
  const size_t begin = at_;
  std::string* text = nullptr;
  size_t copied = begin;
  for (;; ++at_) {
    if (at_ >= content_.size()) {
      throw DataError(csv_place(format_.file, content_, quote) + ": this quote is not closed");
    }
    const char c = content_[at_];
    if (c == '\n') ++next_line_;
    if (c != '"') continue;
    if (at_ + 1 >= content_.size() || content_[at_ + 1] != '"') break;
    if (text == nullptr) text = &unescaped_.emplace_back();
    ++at_;
    text->append(content_.substr(copied, at_ - copied));
    copied = at_ + 1;
  }
  Cell cell{.text = content_.substr(begin, at_ - begin), .offset = quote, .is_quoted = true};
  if (text != nullptr) {
    text->append(content_.substr(copied, at_ - copied));
    cell.text = *text;
  }
  ++at_;
  skip_blanks();
  if (at_ < content_.size() && content_[at_] != format_.separator && !ends_line()) {
    throw DataError(
        fmt::format("{}: text follows the end of a quoted field; double the quotes within a field",
                    csv_place(format_.file, content_, at_)));
  }
  return cell;
}

char detect_separator(std::string_view content) {
  char best = ',';
  double best_share = 0;
  size_t best_fields = 1;
  for (const char separator : kCsvSeparators) {
    const std::vector<size_t> counts = field_counts(content, separator);
    if (counts.empty() || counts.front() < 2) continue;
    const auto alike = std::count(counts.begin(), counts.end(), counts.front());
    const double share = static_cast<double>(alike) / static_cast<double>(counts.size());
    // Beside semicolons or tabs, commas are decimal marks.
    const bool wins_ties =
        counts.front() > best_fields || (best == ',' && (separator == ';' || separator == '\t'));
    if (share < best_share || (share == best_share && !wins_ties)) continue;
    best = separator;
    best_share = share;
    best_fields = counts.front();
  }
  return best;
}

}  // namespace gallop::data

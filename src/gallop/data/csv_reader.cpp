#include "gallop/data/csv_reader.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 34;

char likely_separator(std::string_view line) {
  char likely = ',';
  ptrdiff_t most = 0;
  for (const char candidate : {',', ';', '\t'}) {
    const ptrdiff_t count = std::count(line.begin(), line.end(), candidate);
    if (count > most) likely = candidate;
    most = std::max(most, count);
  }
  return likely;
}

}  // namespace

std::vector<std::string> csv_fields(std::string_view& text, char separator) {
  std::vector<std::string> fields(1);
  size_t at = 0;
  bool is_quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (is_quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        fields.back() += c;
        ++at;
      } else {
        is_quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      is_quoted = true;
    } else if (c == separator) {
      fields.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (c != '\r' || (at + 1 < text.size() && text[at + 1] != '\n')) {
      fields.back() += c;
    }
  }
  text.remove_prefix(at);
  return fields;
}

std::string read_data_file(const std::string& file) {
  constexpr std::string_view kBom = "\xEF\xBB\xBF";
  std::string content = read_file(file, kMaxFileBytes);
  if (content.starts_with(kBom)) content.erase(0, kBom.size());
  if (content.empty()) throw DataError(printable(file) + ": the file is empty");
  return content;
}

void refuse_column(const std::string& file, const std::string& name,
                   const std::vector<std::string>& columns) {
  const std::string nearest = nearest_name(name, columns);
  throw DataError(fmt::format("{}: has no column '{}'{} Its columns: {}", printable(file),
                              printable(name),
                              nearest.empty() ? "." : "; did you mean '" + nearest + "'?",
                              printable(join_names(columns, "and"))));
}

CsvReader::CsvReader(std::string file, std::optional<char> separator)
    : file_(std::move(file)), content_(read_data_file(file_)), rest_(content_) {
  separator_ = separator.value_or(likely_separator(rest_.substr(0, rest_.find('\n'))));
  const char* const begin = rest_.data();
  columns_ = csv_fields(rest_, separator_);
  next_line_ += std::count(begin, rest_.data(), '\n');
  std::set<std::string> seen;
  for (const std::string& name : columns_) {
    if (name.empty()) throw DataError(fmt::format("{}:1: a column has no name", printable(file_)));
    if (seen.insert(name).second) continue;
    throw DataError(
        fmt::format("{}:1: two columns are named '{}'", printable(file_), printable(name)));
  }
}

size_t CsvReader::find(const std::string& name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found == columns_.end()) refuse_column(file_, name, columns_);
  return static_cast<size_t>(found - columns_.begin());
}

std::optional<std::vector<std::string>> CsvReader::next(SkipPolicy& skips) {
  while (!rest_.empty()) {
    const char* const begin = rest_.data();
    std::vector<std::string> fields = csv_fields(rest_, separator_);
    line_ = next_line_;
    next_line_ += std::count(begin, rest_.data(), '\n');
    if (fields.size() == 1 && fields.front().empty()) continue;
    if (fields.size() == columns_.size()) return fields;
    skips.add("line with another number of fields",
              fmt::format("{}:{}: {} fields, but the first line has {}", printable(file_), line_,
                          fields.size(), columns_.size()));
  }
  return std::nullopt;
}

}  // namespace gallop::data

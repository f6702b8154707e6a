#include "gallop/data/data_file.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/gzip.h"

namespace gallop::data {

std::string read_data_file(const std::string& file) {
  constexpr int64_t kMaxFileBytes = int64_t{1} << 34;
  std::string content = read_file(file, kMaxFileBytes);
  if (looks_like_gzip(content)) {
    const Bytes bytes = gunzip(content, printable(file), kMaxFileBytes);
    content.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  if (content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF")) {
    throw DataError(fmt::format(
        "{0}: the file is in UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {0} > utf8.csv",
        printable(file)));
  }
  if (content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);
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

std::string shown_value(std::string_view value) {
  constexpr size_t kLongest = 80;
  if (value.size() <= kLongest) return printable(value);
  const auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(value[at]) & 0xC0) == 0x80;  // In a character of UTF-8.
  };
  size_t end = kLongest;
  while (end > 0 && continues(end)) --end;
  return printable(value.substr(0, end)) + "...";
}

}  // namespace gallop::data

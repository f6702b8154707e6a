#include "gallop/data/class_names.h"

#include <algorithm>

#include "gallop/base/text.h"

namespace gallop::data {

std::vector<std::string> read_class_names(const fs::path& path) {
  constexpr int64_t kMaxBytes = 1 << 26;
  const std::string content = read_file(path, kMaxBytes);
  std::vector<std::string> names;
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    std::string line = content.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(printable(line));
    at = end + 1;
  }
  return names;
}

std::vector<std::string> read_class_names_if_there(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  return read_class_names(path);
}

}  // namespace gallop::data

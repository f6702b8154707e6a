#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gallop::data {

/// Iterates over the lines of a text, without line ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  /// Returns the next line, or nullopt at the end.
  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return line;
  }
  int64_t number() const { return number_; }  ///< 1-based number of the last line.
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  int64_t number_ = 0;
};

/// Whether a line consists of spaces and tabs only.
inline bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

}  // namespace gallop::data

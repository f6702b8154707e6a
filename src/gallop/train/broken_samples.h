#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace gallop::train {

/// The distinct training samples that a run has found to be broken, by index. Each is drawn again
/// in every epoch.
class BrokenSamples {
 public:
  /// Whether the sample was unknown.
  bool add(int64_t index) { return indices_.insert(index).second; }
  int64_t count() const { return static_cast<int64_t>(indices_.size()); }

  /// The indices, separated by commas.
  std::string text() const;
  /// The inverse of text(). Throws DataError for any other text.
  static std::set<int64_t> parse(std::string_view text);

  /// Writes an entry of a checkpoint's map, unless there is none; and adds those of an entry, which
  /// checkpoints of earlier versions lack. Throws DataError if it is not a list of indices.
  void write(std::map<std::string, std::string>& map) const;
  void read(const std::map<std::string, std::string>& map);

 private:
  std::set<int64_t> indices_;
};

}  // namespace gallop::train

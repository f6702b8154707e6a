#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gallop::data {

/// The number of skipped items of a data set for one reason.
struct SkipCount {
  std::string reason;  ///< "invalid label".
  int64_t count = 0;
  std::string first;  ///< The first of them with its error.
};

/// "3 skipped (invalid label), the first: a.tar: 7.cls: ...".
std::string describe(const SkipCount& skipped);

/// Counts skipped items of a data set, by reason.
class Skips {
 public:
  /// `message` names the item and its error.
  void add(const std::string& reason, const std::string& message);
  void add(const SkipCount& counted);

  const std::vector<SkipCount>& counts() const { return counts_; }
  bool empty() const { return counts_.empty(); }
  /// Throws the first as DataError with the remedy, if there is any.
  void throw_first() const;

 private:
  std::vector<SkipCount> counts_;
};

/// Handles an invalid item: counts it if `data.on_error` is skip, else throws DataError.
class SkipPolicy {
 public:
  explicit SkipPolicy(bool skips) : skips_(skips) {}

  bool skips() const { return skips_; }
  void add(const std::string& reason, const std::string& message);
  void add(const Skips& counted);
  const std::vector<SkipCount>& counts() const { return counted_.counts(); }

 private:
  bool skips_;
  Skips counted_;
};

}  // namespace gallop::data

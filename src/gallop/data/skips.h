#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gallop::data {

/// The number of items of a data set that were skipped for one reason.
struct SkipCount {
  std::string reason;  ///< Such as "invalid label".
  int64_t count = 0;
  std::string first;  ///< The first skipped item and its error.
};

/// Formats as "3 skipped (invalid label), the first: a.tar: 7.cls: ...".
std::string describe(const SkipCount& skipped);

/// Counts the skipped items of a data set by reason.
class Skips {
 public:
  /// `message` names the item and its error.
  void add(const std::string& reason, const std::string& message);
  void add(const SkipCount& counted);

  const std::vector<SkipCount>& counts() const { return counts_; }
  bool has(const std::string& reason) const;
  bool empty() const { return counts_.empty(); }
  /// If anything was skipped, throws DataError with the first item and the remedy.
  void throw_first() const;

 private:
  std::vector<SkipCount> counts_;
};

/// Handles an invalid item: counts it if `data.on_error` is skip, otherwise throws DataError.
class SkipPolicy {
 public:
  explicit SkipPolicy(bool skips) : skips_(skips) {}

  bool skips() const { return skips_; }
  void add(const std::string& reason, const std::string& message);
  /// Calls `message` for the first item of a reason only, as the others are just counted.
  void add(const std::string& reason, const std::function<std::string()>& message);
  void add(const Skips& counted);
  const std::vector<SkipCount>& counts() const { return counted_.counts(); }

 private:
  bool skips_;
  Skips counted_;
};

}  // namespace gallop::data

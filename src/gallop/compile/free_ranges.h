#pragma once

#include <cstdint>
#include <map>

namespace gallop::compile {

/// The free parts of an address range. A block is placed in the smallest part that holds it, the
/// lowest of equal ones, to avoid fragmentation.
class FreeRanges {
 public:
  FreeRanges(int64_t begin, int64_t end);

  /// Allocates a block of `bytes` (above 0) and returns its offset; -1 if no part is large enough.
  int64_t take(int64_t bytes);
  /// Releases a block completely.
  void release(int64_t offset, int64_t bytes);

  /// Free parts, from offset to end. Adjacent parts are merged.
  const std::map<int64_t, int64_t>& ranges() const { return end_of_; }
  /// The end of the highest block ever taken.
  int64_t highest() const { return highest_; }

 private:
  std::map<int64_t, int64_t> end_of_;
  int64_t highest_;
};

}  // namespace gallop::compile

#pragma once

#include <cstdint>
#include <map>

namespace gallop::compile {

/// Which parts of a range of addresses are free. A block lies in the smallest part that holds it,
/// in the lowest of equal ones, so that what is used stays together.
class FreeRanges {
 public:
  FreeRanges(int64_t begin, int64_t end);

  /// Offset of a block of `bytes` (above 0); -1 where no part is large enough.
  int64_t take(int64_t bytes);
  /// Gives back all of what take() gave.
  void give_back(int64_t offset, int64_t bytes);

  /// Free parts by their offset: their ends. No two touch.
  const std::map<int64_t, int64_t>& ranges() const { return end_of_; }
  /// The end of the highest block ever taken.
  int64_t highest() const { return highest_; }

 private:
  std::map<int64_t, int64_t> end_of_;
  int64_t highest_;
};

}  // namespace gallop::compile

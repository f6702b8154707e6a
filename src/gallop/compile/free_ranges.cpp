#include "gallop/compile/free_ranges.h"

#include <algorithm>
#include <iterator>

namespace gallop::compile {

FreeRanges::FreeRanges(int64_t begin, int64_t end) : end_of_{{begin, end}}, highest_(begin) {}

int64_t FreeRanges::take(int64_t bytes) {
  auto found = end_of_.end();
  for (auto range = end_of_.begin(); range != end_of_.end(); ++range) {
    const int64_t size = range->second - range->first;
    if (size < bytes) continue;
    if (found == end_of_.end() || size < found->second - found->first) found = range;
  }
  if (found == end_of_.end()) return -1;
  const auto [offset, end] = *found;
  const auto next = end_of_.erase(found);
  if (offset + bytes < end) end_of_.emplace_hint(next, offset + bytes, end);
  highest_ = std::max(highest_, offset + bytes);
  return offset;
}

void FreeRanges::release(int64_t offset, int64_t bytes) {
  int64_t end = offset + bytes;
  auto next = end_of_.lower_bound(offset);
  if (next != end_of_.end() && next->first == end) {
    end = next->second;
    next = end_of_.erase(next);
  }
  if (next != end_of_.begin() && std::prev(next)->second == offset) {
    std::prev(next)->second = end;
  } else {
    end_of_.emplace_hint(next, offset, end);
  }
}

}  // namespace gallop::compile

#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop {

/// The number of pages of a tensor that begins with a page and are in memory.
inline int64_t resident_pages(const at::Tensor& tensor) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((tensor.nbytes() + page - 1) / page);
  if (mincore(tensor.mutable_data_ptr(), tensor.nbytes(), pages.data()) != 0) return -1;
  return std::count_if(pages.begin(), pages.end(), [](auto flags) { return (flags & 1) != 0; });
}

}  // namespace gallop

#include "gallop/base/heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <fstream>

namespace gallop {

namespace {

// Below the trim threshold, which is an int: more would be returned to the system at once.
constexpr size_t kReserveBytes = size_t{3} << 29;

}  // namespace

void retain_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, INT_MAX);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
  // Under a limit on the address space, threads need what the heap does not.
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return;
  // Extends the heap once, so that the address range can be advised before it is used.
  void* block = std::malloc(kReserveBytes);
  if (block == nullptr) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(block) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(block) + kReserveBytes) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  std::free(block);
#endif
}

void return_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

int64_t retained_bytes() {
#ifdef __GLIBC__
  return static_cast<int64_t>(mallinfo2().fordblks);
#else
  return 0;
#endif
}

std::string transparent_huge_pages(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  // "always [madvise] never"
  const size_t begin = line.find('['), end = line.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return line.substr(begin + 1, end - begin - 1);
}

}  // namespace gallop

#include "gallop/tensor/page_tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

namespace gallop {

namespace {

size_t page_bytes() {
  static const auto kBytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kBytes;
}

// The addresses of all tensors in pages.
class Addresses {
 public:
  void add(const void* pages) {
    const std::lock_guard lock(mutex_);
    all_.insert(pages);
  }
  void remove(const void* pages) {
    const std::lock_guard lock(mutex_);
    all_.erase(pages);
  }
  bool has(const void* pages) {
    const std::lock_guard lock(mutex_);
    return all_.contains(pages);
  }

 private:
  std::mutex mutex_;
  std::set<const void*> all_;
};

Addresses& addresses() {
  static auto* const all = new Addresses;  // Tensors may outlive static objects.
  return *all;
}

}  // namespace

at::Tensor zeros_in_pages(int64_t elements, c10::ScalarType type) {
  const size_t bytes = std::max<size_t>(1, static_cast<size_t>(elements) * c10::elementSize(type));
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // What follows looks for this text to tell that memory has run out.
  TORCH_CHECK(memory != MAP_FAILED, "DefaultCPUAllocator: can't allocate memory: ", bytes,
              " bytes of pages");
  // A huge page would be filled as a whole, with pages of other tensors, and is not split at once.
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  addresses().add(memory);
  const auto free = [bytes](void* pages) {
    addresses().remove(pages);
    munmap(pages, bytes);
  };
  return at::from_blob(memory, {elements}, free, at::TensorOptions(type));
}

bool lies_in_pages(const at::Tensor& tensor) {
  return tensor.has_storage() && addresses().has(tensor.storage().data());
}

void release_pages_of(const at::Tensor& tensor, int64_t begin, int64_t end) {
  const size_t page = page_bytes(), element = tensor.element_size();
  const auto base = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  const uintptr_t first = (base + static_cast<size_t>(begin) * element + page - 1) / page * page;
  const uintptr_t last = (base + static_cast<size_t>(end) * element) / page * page;
  if (first >= last) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address within the tensor
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace gallop

#include "gallop/compile/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace gallop::compile {

namespace {

constexpr int kSlots = 16;
constexpr int64_t kPage = 4096;
constexpr int64_t kSmallestApart = 64 << 10;
// Recordings use up addresses, not memory; all slots together must fit into 47 bits.
constexpr int64_t kSlotOfMemory = 8, kMostSlotBytes = int64_t{1} << 42;

// Before each block, and within it as long as nobody asks.
struct Header {
  std::atomic<bool> held;
  int64_t bytes;  // Of a block apart, with this header.
};
static_assert(sizeof(Header) <= Arena::kMargin);

Header* header_of(const void* data) {
  auto* byte = static_cast<std::byte*>(const_cast<void*>(data));
  return reinterpret_cast<Header*>(byte - Arena::kMargin);
}

// One range of addresses for all arenas: so a block is known by its address.
struct Region {
  std::byte* begin = nullptr;
  int64_t slot_bytes = 0;
  std::mutex mutex;
  std::array<bool, kSlots> taken{};
  std::array<std::atomic<int64_t>, kSlots> blocks_held{};  // Apart ones and placed ones.
  std::array<std::atomic<int64_t>, kSlots> placed_held{};

  Region() {
    const int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    const int64_t bytes = std::min(kSlotOfMemory * memory, kMostSlotBytes) / kPage * kPage;
    void* address = mmap(nullptr, static_cast<size_t>(bytes) * kSlots, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return;
    begin = static_cast<std::byte*>(address);
    slot_bytes = bytes;
  }

  bool holds(const void* pointer) const {
    const auto* byte = static_cast<const std::byte*>(pointer);
    return byte >= begin && byte < begin + slot_bytes * kSlots;
  }
  int slot_of(const void* pointer) const {
    return static_cast<int>((static_cast<const std::byte*>(pointer) - begin) / slot_bytes);
  }
};

Region& region() {
  static Region region;
  return region;
}

// What this thread's next allocations are to be.
struct Placing {
  std::byte* base = nullptr;
  std::vector<Arena::Block> blocks;
  int64_t* next_apart = nullptr;  // Set while blocks lie apart.
};
thread_local Placing placing;

c10::Allocator* inner_allocator = nullptr;

bool is_apart(const void* pointer) {
  const auto offset = static_cast<const std::byte*>(pointer) - region().begin;
  return offset % region().slot_bytes >= region().slot_bytes / 2;
}

void release(void* pointer) {
  if (!region().holds(pointer)) {
    inner_allocator->raw_deleter()(pointer);
    return;
  }
  Header* header = header_of(pointer);
  if (is_apart(pointer)) {
    madvise(header, static_cast<size_t>(header->bytes), MADV_DONTNEED);
  } else {
    header->held.store(false, std::memory_order_release);
    region().placed_held[region().slot_of(pointer)] -= 1;
  }
  // Last: from here on the slot may be another arena's.
  region().blocks_held[region().slot_of(pointer)] -= 1;
}

// LibTorch's allocator of the CPU, but for the allocations that have a place.
class PlacingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    std::byte* data = placing.next_apart == nullptr ? take_place(bytes) : take_apart(bytes);
    if (data != nullptr) return {data, data, &release, c10::Device(c10::kCPU)};
    c10::DataPtr pointer = inner_allocator->allocate(bytes);
    // Does nothing for an empty one, which has no deleter to call.
    static_cast<void>(pointer.compare_exchange_deleter(inner_allocator->raw_deleter(), &release));
    return pointer;
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static std::byte* take_place(size_t bytes) {
    auto& blocks = placing.blocks;
    for (Arena::Block& block : blocks) {
      if (static_cast<size_t>(block.bytes) != bytes) continue;
      std::byte* data = placing.base + block.offset;
      block.bytes = -1;
      region().blocks_held[region().slot_of(data)] += 1;
      region().placed_held[region().slot_of(data)] += 1;
      header_of(data)->held.store(true, std::memory_order_relaxed);
      return data;
    }
    return nullptr;
  }

  static std::byte* take_apart(size_t bytes) {
    const int64_t whole =
        (static_cast<int64_t>(bytes) + Arena::kMargin + kPage - 1) / kPage * kPage;
    int64_t& next = *placing.next_apart;
    if (static_cast<int64_t>(bytes) < kSmallestApart || next + whole > region().slot_bytes) {
      return nullptr;
    }
    std::byte* data = placing.base + next + Arena::kMargin;
    next += whole;
    header_of(data)->bytes = whole;
    region().blocks_held[region().slot_of(data)] += 1;
    return data;
  }
};

// Stays for good: blocks that it gave out may outlive every arena.
void install_allocator() {
  static const bool kInstalled = [] {
    inner_allocator = c10::GetCPUAllocator();
    c10::SetCPUAllocator(new PlacingAllocator);
    return true;
  }();
  static_cast<void>(kInstalled);
}

}  // namespace

std::unique_ptr<Arena> Arena::reserve() {
  Region& all = region();
  if (all.begin == nullptr || c10::GetCPUAllocator()->raw_deleter() == nullptr) return nullptr;
  install_allocator();
  const std::lock_guard lock(all.mutex);
  for (int slot = 0; slot < kSlots; ++slot) {
    // One whose blocks are still held somewhere is not given away a second time.
    if (all.taken[slot] || all.blocks_held[slot] != 0) continue;
    all.taken[slot] = true;
    return std::unique_ptr<Arena>(new Arena(slot));
  }
  return nullptr;
}

Arena::Arena(int slot)
    : slot_(slot),
      base_(region().begin + region().slot_bytes * slot),
      next_apart_((region().slot_bytes / 2 + kPage - 1) / kPage * kPage) {
  madvise(base_, static_cast<size_t>(capacity()), MADV_HUGEPAGE);
}

Arena::~Arena() {
  Region& all = region();
  const std::lock_guard lock(all.mutex);
  if (all.blocks_held[slot_] == 0) {
    madvise(base_, static_cast<size_t>(all.slot_bytes), MADV_DONTNEED);
  }
  all.taken[slot_] = false;
}

int64_t Arena::capacity() const { return region().slot_bytes / 2 / kPage * kPage; }

void Arena::place(const std::vector<Block>& blocks) {
  placing.base = base_;
  placing.blocks.assign(blocks.begin(), blocks.end());
  for (const Block& block : blocks) header_of(at(block))->held.store(false);
}

bool Arena::contains(const void* data) const {
  return region().holds(data) && region().slot_of(data) == slot_;
}

bool Arena::is_free(const void* data) const {
  return !header_of(data)->held.load(std::memory_order_acquire);
}

Arena::Apart::Apart(Arena* arena) {
  if (arena == nullptr) return;
  // The places are taken anew when a graph runs next; until then their pages would only add up.
  if (region().placed_held[arena->slot_] == 0) {
    madvise(arena->base_, static_cast<size_t>(arena->capacity()), MADV_DONTNEED);
  }
  placing.base = arena->base_;
  placing.next_apart = &arena->next_apart_;
}

Arena::Apart::~Apart() { placing.next_apart = nullptr; }

}  // namespace gallop::compile

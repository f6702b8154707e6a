#include "gallop/compile/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "gallop/compile/free_ranges.h"

namespace gallop::compile {

namespace {

constexpr int kSlots = 16;
constexpr int64_t kPage = 4096;
constexpr int64_t kSmallestApart = 64 << 10;
// All slots together must fit into 47 bits.
constexpr int64_t kSlotOfMemory = 8, kMostSlotBytes = int64_t{1} << 42;

// Lies before each block.
struct Header {
  std::atomic<bool> held;
  int64_t bytes;  // Bytes of an Apart block, including this header.
};
static_assert(sizeof(Header) <= Arena::kMargin);

Header* header_of(const void* data) {
  auto* byte = static_cast<std::byte*>(const_cast<void*>(data));
  return reinterpret_cast<Header*>(byte - Arena::kMargin);
}

// One address range for all arenas, so that the address of a block identifies it as theirs.
struct Region {
  std::byte* begin = nullptr;
  int64_t slot_bytes = 0;
  std::mutex mutex;
  std::array<bool, kSlots> taken{};
  std::array<std::atomic<int64_t>, kSlots> blocks_held{};  // Apart blocks and placed ones.
  std::array<std::atomic<int64_t>, kSlots> placed_held{};
  // The upper half of a slot, where Apart blocks lie; present while an arena owns the slot or
  // any of its blocks are held.
  std::array<std::optional<FreeRanges>, kSlots> apart;
  std::array<bool, kSlots> keeps_pages{};  // Whether Apart blocks that are freed keep their pages.

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
  // Offset of the upper half of a slot, in bytes.
  int64_t half() const { return slot_bytes / 2 / kPage * kPage; }

  std::byte* take_apart(int slot, int64_t bytes) {
    const std::lock_guard lock(mutex);
    const int64_t offset = apart[slot]->take(bytes);
    return offset < 0 ? nullptr : begin + slot_bytes * slot + offset;
  }

  void release_apart(std::byte* block, int64_t bytes) {
    const std::lock_guard lock(mutex);
    const int slot = slot_of(block);
    if (!keeps_pages[slot]) madvise(block, static_cast<size_t>(bytes), MADV_DONTNEED);
    apart[slot]->release(block - begin - slot_bytes * slot, bytes);
  }

  void keep_pages_apart(int slot, bool keep) {
    const std::lock_guard lock(mutex);
    keeps_pages[slot] = keep;
    if (keep) return;
    for (const auto& [offset, end] : apart[slot]->ranges()) {
      const int64_t used_end = std::min(end, apart[slot]->highest());
      if (offset >= used_end) break;
      madvise(begin + slot_bytes * slot + offset, static_cast<size_t>(used_end - offset),
              MADV_DONTNEED);
    }
  }
};

// Never destroyed: blocks may be released after the end of main().
Region& region() {
  static Region& region = *new Region;
  return region;
}

// Where this thread's next allocations are placed.
struct Placing {
  std::byte* base = nullptr;
  std::vector<Arena::Block> blocks;
  std::optional<int> apart_in;  // A slot, while Arena::Apart is active.
};
thread_local Placing placing;

c10::Allocator* inner_allocator = nullptr;

bool is_apart(const void* pointer) {
  const auto offset = static_cast<const std::byte*>(pointer) - region().begin;
  return offset % region().slot_bytes >= region().half();
}

void release(void* pointer) {
  if (!region().holds(pointer)) {
    inner_allocator->raw_deleter()(pointer);
    return;
  }
  Header* header = header_of(pointer);
  if (is_apart(pointer)) {
    region().release_apart(reinterpret_cast<std::byte*>(header), header->bytes);
  } else {
    header->held.store(false, std::memory_order_release);
    region().placed_held[region().slot_of(pointer)] -= 1;
  }
  // Must be last: from here on, another arena may own the slot.
  region().blocks_held[region().slot_of(pointer)] -= 1;
}

// LibTorch's CPU allocator, except for allocations that are placed in an arena.
class PlacingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    std::byte* data = placing.apart_in ? take_apart(bytes) : take_place(bytes);
    if (data != nullptr) return {data, data, &release, c10::Device(c10::kCPU)};
    c10::DataPtr pointer = inner_allocator->allocate(bytes);
    // Has no effect on an empty pointer, which has no deleter.
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
    if (static_cast<int64_t>(bytes) < kSmallestApart) return nullptr;
    std::byte* block = region().take_apart(*placing.apart_in, whole);
    if (block == nullptr) return nullptr;
    std::byte* data = block + Arena::kMargin;
    header_of(data)->bytes = whole;
    region().blocks_held[*placing.apart_in] += 1;
    return data;
  }
};

// Never uninstalled: blocks that it allocated may outlive every arena.
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
    // A slot with blocks that are still held is not reused.
    if (all.taken[slot] || all.blocks_held[slot] != 0) continue;
    all.taken[slot] = true;
    all.apart[slot].emplace(all.half(), all.slot_bytes);
    return std::unique_ptr<Arena>(new Arena(slot));
  }
  return nullptr;
}

Arena::Arena(int slot) : slot_(slot), base_(region().begin + region().slot_bytes * slot) {
  madvise(base_, static_cast<size_t>(region().slot_bytes), MADV_HUGEPAGE);
}

Arena::~Arena() {
  Region& all = region();
  const std::lock_guard lock(all.mutex);
  if (all.blocks_held[slot_] == 0) {
    madvise(base_, static_cast<size_t>(all.slot_bytes), MADV_DONTNEED);
  }
  all.taken[slot_] = false;
}

int64_t Arena::capacity() const { return region().half(); }

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

Arena::Apart::Apart(Arena* arena) : arena_(arena) {
  if (arena == nullptr) return;
  // A graph's next run writes the placed blocks again; until then their pages only use memory.
  if (region().placed_held[arena->slot_] == 0) {
    madvise(arena->base_, static_cast<size_t>(arena->capacity()), MADV_DONTNEED);
  }
  region().keep_pages_apart(arena->slot_, true);
  placing.apart_in = arena->slot_;
}

Arena::Apart::~Apart() {
  if (arena_ == nullptr) return;
  placing.apart_in.reset();
  region().keep_pages_apart(arena_->slot_, false);
}

}  // namespace gallop::compile

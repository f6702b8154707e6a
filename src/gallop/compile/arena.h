#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gallop::compile {

/// An address range for the temporaries of graphs, larger than the machine's memory. Pages are
/// committed when first written. Allocations by LibTorch's operators on the CPU can be directed
/// into it.
class Arena {
 public:
  /// Bytes before each block that the arena uses for a header.
  static constexpr int64_t kMargin = 64;

  struct Block {
    int64_t bytes = 0;
    int64_t offset = 0;  ///< A multiple of 64, at least kMargin.
  };

  /// Null if the system provides no addresses, or all are taken by other arenas.
  static std::unique_ptr<Arena> reserve();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int64_t capacity() const;
  std::byte* at(const Block& block) const { return base_ + block.offset; }

  /// Until the next call, the first allocation of exactly the size of a block that this thread
  /// makes on the CPU is placed there. Other sizes are allocated as usual. An empty list ends the
  /// placement. The caller is responsible for overlapping blocks.
  void place(const std::vector<Block>& blocks);

  /// Records that an operator keeps a block, so that nothing more may be placed here.
  void spend() { is_spent_ = true; }
  bool is_spent() const { return is_spent_; }

  /// While it lives, large blocks that this thread allocates have separate pages, which are
  /// released at its end, or as soon as a block is freed after it. For phases that allocate small
  /// permanent blocks: on the heap, those would lie between the large ones and fragment it
  /// permanently.
  class Apart {
   public:
    explicit Apart(Arena* arena);  ///< Has no effect without an arena.
    ~Apart();
    Apart(const Apart&) = delete;
    Apart& operator=(const Apart&) = delete;

   private:
    Arena* arena_;
  };

  /// Whether `data` lies in the arena.
  bool contains(const void* data) const;
  /// Whether the block at `data` has been freed since it was last passed to place().
  bool is_free(const void* data) const;

 private:
  explicit Arena(int slot);

  int slot_;
  bool is_spent_ = false;
  std::byte* base_;
};

}  // namespace gallop::compile

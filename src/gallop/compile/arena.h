#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gallop::compile {

/// Addresses for the temporaries of graphs, more than the machine has memory. Pages are taken when
/// first written. What LibTorch's operators allocate on the CPU can be told to lie here.
class Arena {
 public:
  /// Bytes before each block that the arena writes to.
  static constexpr int64_t kMargin = 64;

  struct Block {
    int64_t bytes = 0;
    int64_t offset = 0;  ///< A multiple of 64, at least kMargin.
  };

  /// Null where the system gives no addresses, or all are taken by other arenas.
  static std::unique_ptr<Arena> reserve();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int64_t capacity() const;
  std::byte* at(const Block& block) const { return base_ + block.offset; }

  /// Until the next call, the first allocation of exactly so many bytes that this thread makes on
  /// the CPU lies at the block's place. Sizes that no block has go where they always went. An empty
  /// list ends it. The caller answers for blocks that overlap.
  void place(const std::vector<Block>& blocks);

  /// Records that a block is kept: no more may be placed here.
  void spend() { is_spent_ = true; }
  bool is_spent() const { return is_spent_; }

  /// While it lives, large blocks that this thread allocates have pages of their own, which are
  /// given back at its end, or as soon as a block is free after it. For phases in which small
  /// blocks are made that stay: from the heap, those would lie between the large ones and split it
  /// for good.
  class Apart {
   public:
    explicit Apart(Arena* arena);  ///< Does nothing without one.
    ~Apart();
    Apart(const Apart&) = delete;
    Apart& operator=(const Apart&) = delete;

   private:
    Arena* arena_;
  };

  /// Whether `data` lies in the arena.
  bool contains(const void* data) const;
  /// Whether the block is free at `data` since it was last given to place().
  bool is_free(const void* data) const;

 private:
  explicit Arena(int slot);

  int slot_;
  bool is_spent_ = false;
  std::byte* base_;
};

}  // namespace gallop::compile

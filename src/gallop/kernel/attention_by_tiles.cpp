#include "gallop/kernel/attention_by_tiles.h"

#include <ATen/Parallel.h>

#include "gallop/kernel/gemm.h"

namespace gallop::kernel {

namespace {

// A head's rows are far apart, and fetching them costs more than processing them. The next
// sample is contiguous: each head of this sample prefetches its part of it, if the whole sample
// fits into the core's cache.
class NextSample {
 public:
  NextSample(const AttentionShape& shape, int64_t head, int64_t end)
      : heads_(shape.heads),
        head_(head % shape.heads),
        sample_(head / shape.heads + 1),
        numbers_(shape.tokens * shape.heads * shape.width) {
    constexpr int64_t kMostNumbers = 1 << 16;
    if (sample_ * heads_ >= end || numbers_ > kMostNumbers) sample_ = -1;
  }
  // Adds one of the matrices, with `columns` times the elements of the narrowest.
  NextSample& add(const Bf16* from, int64_t columns) {
    if (sample_ < 0) return *this;
    constexpr int64_t kLineNumbers = ReadSoon::kLine / static_cast<int64_t>(sizeof(Bf16));
    const int64_t lines = numbers_ * columns / kLineNumbers;
    const int64_t begin = lines * head_ / heads_;
    soon_.parts[count_] =
        reinterpret_cast<const char*>(from + sample_ * numbers_ * columns + begin * kLineNumbers);
    soon_.lines[count_++] = lines * (head_ + 1) / heads_ - begin;
    return *this;
  }
  const ReadSoon& soon() const { return soon_; }

 private:
  int64_t heads_, head_, sample_, numbers_, count_ = 0;
  ReadSoon soon_ = {};
};

}  // namespace

AttentionByTiles::AttentionByTiles(Isa isa, const AttentionShape& shape, const HeadOptions& options,
                                   const Documents& documents)
    : isa_(isa),
      shape_(shape),
      options_(options),
      documents_(documents),
      forward_(kernels_for<AttentionForwardTiles>(isa)),
      backward_(kernels_for<AttentionBackwardTiles>(isa)) {}

HeadOptions AttentionByTiles::options_of(int64_t tokens) const {
  HeadOptions options = options_;
  options.tokens = tokens;
  return options;
}

void AttentionByTiles::forward(const Bf16* qkv, Bf16* y, float* log_sums) const {
  at::parallel_for(0, shape_.count(), 1, [&](int64_t begin, int64_t end) {
    const Gemm<Bf16> tiles(isa_);
    Scratch scratch(forward_.scratch_bytes(options_of(documents_.longest())));
    void* const room = scratch.take<char>(0);
    for (int64_t i = begin; i < end; ++i) {
      ReadSoon soon = NextSample(shape_, i, end).add(qkv, 3).soon();
      for (const Document& one : documents_.of_row(i / shape_.heads)) {
        forward_.run(options_of(one.tokens), shape_.parts(qkv, i, one), one.of(shape_.output(y, i)),
                     log_sums + i * shape_.tokens + one.begin, soon, room);
        soon = {};
      }
    }
  });
}

void AttentionByTiles::backward(const Bf16* dy, const Bf16* qkv, const Bf16* y,
                                const float* log_sums, Bf16* dqkv) const {
  at::parallel_for(0, shape_.count(), 1, [&](int64_t begin, int64_t end) {
    const Gemm<Bf16> tiles(isa_);
    Scratch scratch(backward_.scratch_bytes(options_of(documents_.longest())));
    void* const room = scratch.take<char>(0);
    for (int64_t i = begin; i < end; ++i) {
      ReadSoon soon = NextSample(shape_, i, end).add(qkv, 3).add(dy, 1).add(y, 1).soon();
      for (const Document& one : documents_.of_row(i / shape_.heads)) {
        backward_.run(options_of(one.tokens), shape_.parts(qkv, i, one),
                      one.of(shape_.output(y, i)), one.of(shape_.output(dy, i)),
                      log_sums + i * shape_.tokens + one.begin, shape_.parts(dqkv, i, one), soon,
                      room);
        soon = {};
      }
    }
  });
}

}  // namespace gallop::kernel

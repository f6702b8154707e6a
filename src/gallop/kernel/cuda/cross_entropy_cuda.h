#pragma once

// Softmax cross-entropy on a GPU, a thread or a block for each row: what
// kernel/cpu/cross_entropy.cpp is on the CPU. A class that is out of range makes the loss no
// number, as the host is not to wait. Behind loop_cuda.h, loop_cuda_reductions.h, kernel_cuda.h and
// cross_entropy_slots.h.

namespace gallop_cuda {

using gallop::kernel::CrossEntropySlot;

/// What is wanted of a row.
struct RowTarget {
  bool has_class, counts, is_right_kind;
  Int64 index;
  const float* shares;
  const Bf16* bf16_shares;

  __device__ RowTarget(const KernelSlots& a, Int64 row, Int64 columns) {
    const auto* const classes = address<const Int64>(a, CrossEntropySlot::kClasses);
    has_class = classes != nullptr;
    index = has_class ? classes[row] : 0;
    counts = !has_class || index != static_cast<Int64>(a.slots[CrossEntropySlot::kIgnored]);
    is_right_kind = !has_class || !counts || (index >= 0 && index < columns);
    if (!is_right_kind) index = 0;
    shares = address<const float>(a, CrossEntropySlot::kSharesFp32);
    if (shares != nullptr) shares += row * columns;
    bf16_shares = address<const Bf16>(a, CrossEntropySlot::kSharesBf16);
    if (bf16_shares != nullptr) bf16_shares += row * columns;
  }
  __device__ float share(Int64 column) const {
    return shares != nullptr ? shares[column] : read(bf16_shares[column]);
  }
};

__device__ inline float no_number() { return __uint_as_float(0x7fc00000U); }

/// The threads of a block, which compute one row together.
struct BlockOfRow {
  static constexpr bool kIsBlock = true;
  using Sum = Total<Plus, float>;
  double* shared;  // One for each warp.

  __device__ Int64 first() const { return threadIdx.x; }
  __device__ Int64 step() const { return blockDim.x; }
  __device__ bool is_leader() const { return threadIdx.x == 0; }
  // All threads get the results.
  __device__ float largest(float own) const { return join_row<Larger>(own, shared); }
  __device__ double sum(double own) const { return join_row<Plus>(own, shared); }
};

/// A thread that computes a row alone, as a block would mostly idle with few classes.
struct ThreadOfRow {
  static constexpr bool kIsBlock = false;
  using Sum = Total<Plus, double>;  // As exact as the sum of a block's threads.

  __device__ Int64 first() const { return 0; }
  __device__ Int64 step() const { return 1; }
  __device__ bool is_leader() const { return true; }
  __device__ float largest(float own) const { return own; }
  __device__ double sum(double own) const { return own; }
};

/// Logits of a row. The first row is aligned to 16 bytes, and so are all of a multiple of them.
template <typename T, typename Threads>
struct Logits {
  const T* x;
  Int64 columns;
  const Threads& threads;

  __device__ float largest() const {
    float top;
    set_lowest(top);
    visit([&](Int64, float logit) { top = op_maximum(top, logit); }, [] {});
    return threads.largest(top);
  }
  /// The sum of number(column, logit).
  template <typename Number>
  __device__ double sum(const Number& number) const {
    typename Threads::Sum sum;
    visit([&](Int64 column, float logit) { sum.add(number(column, logit)); },
          [&] { sum.close_part(); });
    return threads.sum(sum.total());
  }

 private:
  /// Calls body(column, logit) for those of this thread, and behind_part() after at most 32 of
  /// them.
  template <typename Body, typename BehindPart>
  __device__ void visit(const Body& body, const BehindPart& behind_part) const {
    constexpr int kWide = 16 / sizeof(T);
    if constexpr (!Threads::kIsBlock) {
      visit_packs<1, 4>(body, behind_part);
    } else if (columns % kWide == 0) {
      visit_packs<kWide, 4>(body, behind_part);
    } else {
      visit_packs<1, 8>(body, behind_part);
    }
  }
  /// In packs, of which a thread loads so many at once.
  template <int kWidth, int kLoads, typename Body, typename BehindPart>
  __device__ void visit_packs(const Body& body, const BehindPart& behind_part) const {
    using Piece = Pack<T, kWidth>;
    static_assert(kWidth * kLoads <= 32, "the most that a sum takes in fp32");
    const Int64 step = threads.step() * kWidth;
    const auto visit_pack = [&](Int64 at, const Piece& logits) {
#pragma unroll
      for (int u = 0; u < kWidth; ++u) body(at + u, read(logits.v[u]));
    };
    Int64 at = threads.first() * kWidth;
#pragma unroll 1
    for (; at + (kLoads - 1) * step < columns; at += kLoads * step) {
      Piece logits[kLoads];
#pragma unroll
      for (int k = 0; k < kLoads; ++k) logits[k] = fetch<true, kWidth>(x + at + k * step);
#pragma unroll
      for (int k = 0; k < kLoads; ++k) visit_pack(at + k * step, logits[k]);
      behind_part();
    }
#pragma unroll 1
    for (; at < columns; at += step) visit_pack(at, fetch<true, kWidth>(x + at));
  }
};

/// What a thread has of the sums over all rows.
struct LossSum {
  double loss = 0, correct = 0;
};

/// Adds a row to the sums of its leader.
template <typename T>
struct CrossEntropyRow {
  LossSum& sum;

  template <typename Threads>
  __device__ void run(const KernelSlots& a, const Threads& threads, Int64 row) const {
    const auto columns = static_cast<Int64>(a.slots[CrossEntropySlot::kColumns]);
    const T* const x = address<const T>(a, CrossEntropySlot::kLogits) + row * columns;
    const Logits<T, Threads> logits{x, columns, threads};
    const RowTarget target(a, row, columns);
    const double smoothing = number(a, CrossEntropySlot::kSmoothing), keep = 1 - smoothing;

    const float top = logits.largest();
    // Sums of e^d, d, shares and shares times d, d being what a logit is below the largest. The row
    // is in a cache by now: more passes through it cost less than sums that are not needed.
    const double exp = logits.sum([&](Int64, float logit) { return op_exp(logit - top); });
    double off = 0, share = 0, product = 0;
    if (smoothing > 0) off = logits.sum([&](Int64, float logit) { return logit - top; });
    if (!target.has_class) {
      share = logits.sum([&](Int64 i, float) { return target.share(i); });
      product = logits.sum([&](Int64 i, float logit) { return target.share(i) * (logit - top); });
    }
    const float at = target.has_class && target.counts ? read(x[target.index]) : top;
    // If there are several largest logits, the first counts.
    bool is_correct = target.has_class && target.counts && at >= top;
    if (is_correct) {
      is_correct = 0 == logits.sum([&](Int64 i, float logit) {
        return i < target.index && logit >= top ? 1.0F : 0.0F;
      });
    }
    if (!threads.is_leader()) return;

    double weight = 1, wanted = 0;  // Sums of the targets, and of each times its d.
    if (target.has_class) {
      weight = target.counts ? 1 : 0;
      wanted = keep * (static_cast<double>(at) - static_cast<double>(top));
    } else {
      weight = keep * share + smoothing;
      wanted = keep * product;
    }
    if (smoothing > 0) wanted += smoothing / static_cast<double>(columns) * off;
    auto* const saved = address<float>(a, CrossEntropySlot::kRows) + row * 2;
    saved[0] = top;
    saved[1] = target.is_right_kind ? static_cast<float>(weight / exp) : no_number();
    const double loss = target.counts ? weight * op_log(exp) - wanted : 0;
    sum.loss += target.is_right_kind ? loss : static_cast<double>(no_number());
    sum.correct += is_correct ? 1 : 0;
  }
};

template <typename T>
struct CrossEntropyBackwardRow {
  template <typename Threads>
  __device__ void run(const KernelSlots& a, const Threads& threads, Int64 row) const {
    const auto columns = static_cast<Int64>(a.slots[CrossEntropySlot::kColumns]);
    const float scale = *address<const float>(a, CrossEntropySlot::kGradient);
    const float smoothing = static_cast<float>(number(a, CrossEntropySlot::kSmoothing));
    const float keep = 1 - smoothing;
    const float less = -(smoothing / static_cast<float>(columns) * scale);
    const T* const x = address<const T>(a, CrossEntropySlot::kLogits) + row * columns;
    T* const dx = address<T>(a, CrossEntropySlot::kResult) + row * columns;
    const float* const saved = address<const float>(a, CrossEntropySlot::kRows) + row * 2;
    const RowTarget target(a, row, columns);
    for (Int64 i = threads.first(); i < columns; i += threads.step()) {
      const float p = op_exp(read(x[i]) - saved[0]) * saved[1];
      float result = 0;
      if (!target.has_class) {
        result = fmaf(-target.share(i), keep * scale, fmaf(p, scale, less));
      } else if (target.counts) {
        // In one product: p - 1 is what a sure model's gradient is.
        result = fmaf(i == target.index ? p - keep : p, scale, less);
      }
      write(dx[i], result);
    }
  }
};

__device__ inline bool has_narrow_rows(const KernelSlots& a) {
  return a.slots[CrossEntropySlot::kColumns] <= gallop::kernel::kNarrowClasses;
}

/// Calls body.run for the rows of this thread; `shared` has kCudaThreads elements.
template <typename Body>
__device__ inline void for_rows(const KernelSlots& a, double* shared, const Body& body) {
  const auto rows = static_cast<Int64>(a.slots[CrossEntropySlot::kRowCount]);
  if (has_narrow_rows(a)) {
    const Int64 stride = static_cast<Int64>(gridDim.x) * blockDim.x;
    Int64 row = static_cast<Int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; row < rows; row += stride) body.run(a, ThreadOfRow{}, row);
    return;
  }
  for (Int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    body.run(a, BlockOfRow{shared}, row);
  }
}

template <typename T>
__device__ inline void cross_entropy(const KernelSlots& a) {
  __shared__ double shared[kCudaThreads];
  LossSum sum;
  for_rows(a, shared, CrossEntropyRow<T>{sum});
  if (has_narrow_rows(a)) {  // Else one thread is the leader of all rows.
    sum.loss = join_block<Plus>(sum.loss, shared);
    sum.correct = join_block<Plus>(sum.correct, shared);
  }
  if (threadIdx.x != 0) return;
  address<double>(a, CrossEntropySlot::kBlockLosses)[blockIdx.x] = sum.loss;
  address<double>(a, CrossEntropySlot::kBlockCorrect)[blockIdx.x] = sum.correct;
}

template <typename T>
__device__ inline void cross_entropy_backward(const KernelSlots& a) {
  for_rows(a, nullptr, CrossEntropyBackwardRow<T>{});
}

GALLOP_CUDA_KERNELS(gallop_cross_entropy, cross_entropy)
GALLOP_CUDA_KERNELS(gallop_cross_entropy_backward, cross_entropy_backward)

// One block adds up the sums of all blocks.
GALLOP_CUDA_KERNEL(gallop_cross_entropy_sum) {
  __shared__ double shared[kCudaThreads];
  const auto blocks = static_cast<Int64>(a.slots[CrossEntropySlot::kBlocks]);
  const auto* const losses = address<const double>(a, CrossEntropySlot::kBlockLosses);
  const auto* const correct = address<const double>(a, CrossEntropySlot::kBlockCorrect);
  double loss = 0, count = 0;
  for (Int64 block = threadIdx.x; block < blocks; block += blockDim.x) {
    loss += losses[block];
    count += correct[block];
  }
  loss = join_block<Plus>(loss, shared);
  count = join_block<Plus>(count, shared);
  if (threadIdx.x != 0) return;
  *address<float>(a, CrossEntropySlot::kLoss) = static_cast<float>(loss);
  auto* const all_correct = address<Int64>(a, CrossEntropySlot::kAllCorrect);
  if (all_correct != nullptr) *all_correct = static_cast<Int64>(count);
}

}  // namespace gallop_cuda

#pragma once

// What the kernels of cross_entropy_cuda.h are given; for NVRTC too, hence without includes.
namespace gallop::kernel {

/// With at most so many classes, a thread computes a row; with more, a block of threads.
inline constexpr int kNarrowClasses = 64;

struct CrossEntropySlot {
  enum : int {
    // Addresses.
    kLogits,
    kClasses,     ///< int64, or 0 where targets are shares.
    kSharesFp32,  ///< Of these one or none.
    kSharesBf16,
    kRows,          ///< fp32 [rows, 2]: CrossEntropyRow.
    kBlockLosses,   ///< fp64, one for each block: the sum of its rows.
    kBlockCorrect,  ///< fp64 likewise, a number of rows.
    kLoss,          ///< fp32
    kAllCorrect,    ///< int64, or 0.
    kGradient,      ///< fp32, of the loss.
    kResult,        ///< The logits' gradient.
    // Numbers.
    kRowCount,
    kBlocks,  ///< Of the forward pass.
    kColumns,
    kIgnored,
    kSmoothing,
  };
};

}  // namespace gallop::kernel

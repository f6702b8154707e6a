#pragma once

// What the kernels of update_cuda.h are given; for NVRTC too, hence without includes.
namespace gallop::kernel {

struct UpdateSlot {
  enum : int {
    // Addresses; 0 where there is none.
    kLr,         ///< fp32
    kGradScale,  ///< fp32
    kFoundInf,   ///< fp32
    kSteps,      ///< fp32
    kRunning,    ///< fp64, a row for each parameter.
    kSums,       ///< fp64, one for each block of this start.
    kAllSums,    ///< fp64, of all starts.
    kNorm,       ///< fp64
    kMeasures,   ///< fp64, two for each block of this start: of the parameter, and of its change.
    kMeasured,   ///< fp64, two for each tensor of this start.
    kScheduledDecay,  ///< fp64
    kDraws,           ///< int64, seed and step, by which bf16 parameters are rounded.
    // Numbers.
    kAllBlocks,
    kTensors,
    kScheduled,  ///< Bit i: in the place of option i stands the address of one in fp64.
    kPurpose,    ///< What goes into the upper half of the key of `kDraws`.
    kFirstOption,
    kFirstTensor = kFirstOption + 12,
  };
};

/// Fields of each tensor, from kFirstTensor on.
struct UpdateField {
  enum : int {
    kParameter,
    kGradient,
    kBf16Copy,  ///< bf16, or 0: a copy of an fp32 parameter, or what rounding a bf16 one loses.
    kSize,
    kFirstBlock,
    kIndexAndFormats,  ///< Among steps, times four; 1 for a gradient and 2 for a parameter in bf16.
    kWeightDecay,      ///< Below 0 for the one that varies.
    kLrFactor,
    kFirstState,  ///< As many as the rule has; behind them the scales of those that can be in 8
                  ///< bits.
  };
};

/// Numbers that a block has.
inline constexpr int kUpdateBlock = 4096;

}  // namespace gallop::kernel

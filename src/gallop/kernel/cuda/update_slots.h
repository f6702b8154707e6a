#pragma once

// What the kernels of update_cuda.h are given; for NVRTC too, hence without includes.
namespace gallop::kernel {

struct UpdateSlot {
  enum : int {
    // Addresses; 0 where there is none.
    kLr,       ///< fp32
    kDivisor,  ///< fp32
    kSkip,     ///< fp32
    kSteps,    ///< fp32
    kSums,     ///< fp64, one for each block of this start.
    kAllSums,  ///< fp64, of all starts.
    kNorm,     ///< fp64
    // Numbers.
    kAllBlocks,
    kTensors,
    kFirstNumber,  ///< AdamW: beta1, beta2, eps; SGD: momentum, dampening.
    kNesterov = kFirstNumber + 3,
    kFirstTensor = 16,
  };
};

/// Of each tensor, from kFirstTensor on.
struct UpdateField {
  enum : int {
    kParameter,
    kGradient,
    kIsBf16,  ///< The gradient.
    kState,   ///< AdamW: exp_avg; SGD: the momentum buffer or 0.
    kSecondState,
    kShadow,  ///< bf16, or 0.
    kSize,
    kFirstBlock,
    kStepIndex,
    kWeightDecay,
    kFields,
  };
};

/// Numbers that a block has, and tensors of one start.
inline constexpr int kUpdateBlock = 4096;
inline constexpr int kUpdateTensors = (512 - UpdateSlot::kFirstTensor) / UpdateField::kFields;

}  // namespace gallop::kernel

#pragma once

// What gallop_dropout_* of dropout_cuda.h are given; for NVRTC too, hence without includes.
namespace gallop::kernel {

struct DropoutSlot {
  enum : int {
    kX,
    kY,
    kCount,        ///< Of numbers.
    kSeedAndStep,  ///< The address of two 64-bit numbers.
    kCall,
    kPurpose,    ///< What the key's second word is changed by.
    kThreshold,  ///< Of 16 random bits: less are dropped.
    kScale,      ///< Of the others.
    kShare,      ///< The address of an fp32 number that decides over both in their place, or 0.
  };
};

}  // namespace gallop::kernel

#pragma once

#include <cstdint>
#include <random>

#include "gallop/compile/codegen/loop_program.h"

namespace gallop::compile {

/// Unplanned programs: formats, broadcasts, memory orders, operations and reductions by
/// chance.
class RandomPrograms {
 public:
  /// With fp16 as well as bf16 where programs are for GPUs.
  explicit RandomPrograms(uint64_t seed, bool for_gpus = false)
      : random_(seed), for_gpus_(for_gpus) {}

  LoopProgram make();
  /// The same with other sizes, multiples of `unit` (and strides in the same order of memory).
  LoopProgram resized(const LoopProgram& program, int64_t unit = 1);
  /// A number for an input: mostly small, sometimes an end of the format.
  double number(Format format);
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  /// bf16, or fp16.
  Format narrow() { return for_gpus_ && chance(50) ? Format::kFp16 : Format::kBf16; }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::mt19937_64 random_;
  bool for_gpus_;
};

}  // namespace gallop::compile

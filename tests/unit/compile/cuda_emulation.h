#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/compile/codegen/cuda_plan.h"

namespace gallop::compile {

/// The prefix of emulated kernels: tests/fixtures/cuda_on_cpu.h and cuda_prefix().
std::string emulated_prefix();

/// cuda_source() of the plan, with a function around it that starts its kernels on the CPU one
/// after the other.
KernelSource emulated_source(const CudaPlan& plan);

/// Kernels of a plan on the CPU.
class EmulatedLoop {
 public:
  /// The compiled emulated_source().
  EmulatedLoop(const CudaPlan& plan, const CompiledKernel& kernel);

  /// As CudaKernel::launch(). `aligned` addresses take the wide kernel; `reversed` runs threads in
  /// the other order. Fails the test at a barrier that not all threads reach.
  void operator()(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
                  bool aligned, bool reversed) const;

 private:
  using Run = bool (*)(const uint64_t* slots, const uint32_t* shape, const uint32_t* last_shape,
                       const uint32_t* total_shape, bool aligned, bool reversed);

  CudaPlan plan_;
  Run run_;
};

}  // namespace gallop::compile

#pragma once

#include <map>
#include <memory>
#include <string>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/kernel/cuda/launcher.h"

namespace gallop::compile {

/// Runs the sources of kernel/cuda synchronously on the CPU, with CPU tensors.
class EmulatedLauncher final : public kernel::CudaLauncher {
 public:
  EmulatedLauncher();
  bool can_launch(c10::Device) override { return true; }
  void launch(const kernel::CudaLaunch& launch) override;

  bool reversed = false;  ///< Threads run in reverse order.
  int64_t launches = 0;

 private:
  using Run = bool (*)(const char* kernel, const uint64_t* slots, const uint32_t* shape,
                       bool reversed);
  KernelCompiler compiler_;
  std::map<std::string, CompiledKernel> texts_;
};

}  // namespace gallop::compile

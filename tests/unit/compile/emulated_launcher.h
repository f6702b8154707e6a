#pragma once

#include <map>
#include <memory>
#include <string>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/kernel/cuda/launcher.h"
#include "unit/compile/cache_folder.h"

namespace gallop::compile {

/// Runs the texts of kernel/cuda on the CPU, at once, with tensors of the CPU.
class EmulatedLauncher final : public kernel::CudaLauncher {
 public:
  EmulatedLauncher();
  bool can_launch(c10::Device) override { return true; }
  void launch(const kernel::CudaLaunch& launch) override;

  bool reversed = false;  ///< Threads run in the other order.
  int64_t launches = 0;

 private:
  using Run = bool (*)(const char* kernel, const uint64_t* slots, const uint32_t* shape,
                       bool reversed);
  CacheFolder folder_;
  KernelCompiler compiler_;
  std::map<std::string, CompiledKernel> texts_;
};

}  // namespace gallop::compile

#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gallop/compile/codegen/cuda_compiler.h"
#include "gallop/compile/codegen/cuda_driver.h"
#include "gallop/compile/codegen/cuda_plan.h"

namespace gallop::compile {

/// A LoopProgram for one GPU: the implementation of LoopKernel there.
class CudaKernel {
 public:
  /// Starts to compile the program for this GPU. If there is no driver, fallback_reason() says so.
  static std::unique_ptr<CudaKernel> make(const LoopProgram& program, CudaCompiler& compiler,
                                          int device, const std::string& driver);

  bool has_driver() const { return driver_ != nullptr; }
  bool is_done() const;
  /// Waits for the compiler, then loads the kernel. Returns whether it can run.
  bool load();
  /// Why it cannot run, or why the disk cache cannot be used; empty before load() returns.
  const std::string& fallback_reason() const { return fallback_reason_; }

  /// Launches it on the stream; `totals` has total_bytes(plan()). Throws DeviceError, and
  /// InternalError if the kernel is not loaded.
  void launch(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
              void* totals, void* stream) const;

  const CudaPlan& plan() const { return plan_; }

 private:
  void load_once();

  CudaPlan plan_;
  std::string symbol_;
  int device_ = 0;
  std::shared_ptr<const CudaDriver> driver_;
  std::shared_future<CudaBinary> binary_;
  std::once_flag once_;
  std::string fallback_reason_;
  std::shared_ptr<void> module_;
  void* plain_ = nullptr;
  void* aligned_ = nullptr;
  void* columns_ = nullptr;
  void* totals_ = nullptr;
};

}  // namespace gallop::compile

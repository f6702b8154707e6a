#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gallop/compile/codegen/cuda_compiler.h"
#include "gallop/compile/codegen/cuda_driver.h"
#include "gallop/kernel/cuda/launcher.h"

namespace gallop::compile {

/// One of the texts of kernel/cuda with what it stands behind but for cuda_prefix(). Throws
/// InternalError for another path.
KernelSource cuda_text(const std::string& path);
/// The names of its kernels. Throws likewise.
const std::vector<std::string>& cuda_text_kernels(const std::string& path);

/// All texts of kernel/cuda on one GPU.
class CudaTextKernels {
 public:
  /// Waits for the compiler, then loads them into the thread's current context. Without NVRTC or a
  /// driver, or where that fails, lost() says so.
  CudaTextKernels(CudaCompiler& compiler, int device, const std::string& driver);

  /// One line; empty where all can run.
  const std::string& lost() const { return lost_; }
  /// Throws DeviceError, and InternalError where there is no such kernel.
  void launch(const kernel::CudaLaunch& launch, void* stream) const;

 private:
  std::shared_ptr<const CudaDriver> driver_;
  std::vector<std::shared_ptr<void>> modules_;
  std::map<std::string, void*> functions_;  // By name, which no two texts share.
  std::string lost_;
};

/// The launcher for this machine's GPUs.
class NvrtcLauncher final : public kernel::CudaLauncher {
 public:
  explicit NvrtcLauncher(CudaCompilerOptions options = {}, std::string driver = "libcuda.so.1");

  bool can_launch(c10::Device device) override;
  void launch(const kernel::CudaLaunch& launch) override;
  /// Why a device cannot have the kernels, in one line; empty where it can or was not asked for.
  std::string lost(c10::Device device);

 private:
  CudaTextKernels& kernels_of(c10::Device device);

  CudaCompiler compiler_;
  std::string driver_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<CudaTextKernels>> kernels_;  // By the GPU's number.
};

}  // namespace gallop::compile

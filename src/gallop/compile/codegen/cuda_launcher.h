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

/// One of the texts of kernel/cuda with what it stands behind but for cuda_prefix(); of a text in
/// parts only this one, or all. Throws InternalError where there is none.
KernelSource cuda_text(const std::string& path, const std::string& part = {});
/// The names of its kernels. Throws likewise.
std::vector<std::string> cuda_text_kernels(const std::string& path, const std::string& part = {});

/// The texts of kernel/cuda on one GPU.
class CudaTextKernels {
 public:
  /// Waits for the compiler and loads those without parts. Without NVRTC or a driver, or where that
  /// fails, fallback_reason() says so.
  CudaTextKernels(CudaCompiler& compiler, int device, const std::string& driver);

  /// One line; empty where all can run.
  const std::string& fallback_reason() const { return fallback_reason_; }
  /// Compiles and loads a part when it is first needed: those of all rules take NVRTC 20 s. Throws
  /// DeviceError, and InternalError where there is no such kernel.
  void launch(const kernel::CudaLaunch& launch, void* stream);

 private:
  struct Wanted {
    std::string path, part;
  };
  void load(const std::vector<Wanted>& texts);
  void* function_of(const kernel::CudaLaunch& launch);

  CudaCompiler& compiler_;
  int device_;
  std::string fallback_reason_;
  std::shared_ptr<const CudaDriver> driver_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> modules_;
  std::map<std::string, void*> functions_;  // By name, which no two texts share.
};

/// The launcher for this machine's GPUs.
class NvrtcLauncher final : public kernel::CudaLauncher {
 public:
  explicit NvrtcLauncher(CudaCompilerOptions options = {}, std::string driver = "libcuda.so.1");

  bool can_launch(c10::Device device) override;
  void launch(const kernel::CudaLaunch& launch) override;
  /// Why a device cannot have the kernels, in one line; empty where it can or was not asked for.
  std::string fallback_reason(c10::Device device);

 private:
  CudaTextKernels& kernels_of(c10::Device device);

  CudaCompiler compiler_;
  std::string driver_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<CudaTextKernels>> kernels_;  // By the GPU's number.
};

}  // namespace gallop::compile

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

/// The source in kernel/cuda at `path` with its includes except cuda_prefix(). If it has parts,
/// only `part`, or all of them if that is empty. Throws InternalError if it does not exist.
KernelSource cuda_text(const std::string& path, const std::string& part = {});
/// The names of the source's kernels. Throws InternalError if it does not exist.
std::vector<std::string> cuda_text_kernels(const std::string& path, const std::string& part = {});

/// The kernels of kernel/cuda on one GPU.
class CudaTextKernels {
 public:
  /// Waits for the compiler and loads the sources without parts. If NVRTC or a driver is missing,
  /// or if compilation fails, fallback_reason() says so.
  CudaTextKernels(CudaCompiler& compiler, int device, const std::string& driver);

  /// One line; empty if all kernels can run.
  const std::string& fallback_reason() const { return fallback_reason_; }
  /// Compiles and loads a part when it is first needed: NVRTC takes 20 s for all update rules.
  /// Throws DeviceError, and InternalError if there is no such kernel.
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
  std::map<std::string, void*> functions_;  // By name, which is unique across sources.
};

/// The CudaLauncher for the GPUs of this machine.
class NvrtcLauncher final : public kernel::CudaLauncher {
 public:
  explicit NvrtcLauncher(CudaCompilerOptions options = {}, std::string driver = "libcuda.so.1");

  bool can_launch(c10::Device device) override;
  void launch(const kernel::CudaLaunch& launch) override;
  /// Why a device cannot run the kernels, in one line; empty if it can or was not used yet.
  std::string fallback_reason(c10::Device device);

 private:
  CudaTextKernels& kernels_of(c10::Device device);

  CudaCompiler compiler_;
  std::string driver_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<CudaTextKernels>> kernels_;  // By the GPU's number.
};

}  // namespace gallop::compile

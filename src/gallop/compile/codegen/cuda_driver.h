#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gallop::compile {

/// The few functions of the GPU's driver (docs.nvidia.com/cuda/cuda-driver-api) that generated
/// kernels need, loaded at run time. All but open() throw DeviceError with the driver's message.
class CudaDriver {
 public:
  /// Null if there is no driver; then `missing` is the reason.
  static std::shared_ptr<const CudaDriver> open(std::string& missing,
                                                const std::string& name = "libcuda.so.1");

  /// The compute capability of a GPU, 90 for 9.0.
  int capability(int device) const;

  /// Loads a cubin or PTX for a GPU, for as long as the pointer lives.
  std::shared_ptr<void> load(const std::string& image, int device) const;
  /// The kernel of this name in the module.
  void* find(const std::shared_ptr<void>& module, const std::string& name) const;

  /// Launches a kernel on a GPU. Its only argument are the slots, which are copied.
  void launch(int device, void* function, std::array<uint32_t, 2> grid,
              std::array<uint32_t, 2> block, void* stream, std::vector<uint64_t>& slots) const;

 private:
  struct Functions;
  /// Sets the GPU's primary context, which the CUDA runtime and thus LibTorch use, if the
  /// thread has no current one: it has none before its first call of the runtime.
  void need_context(int device) const;
  explicit CudaDriver(std::shared_ptr<const Functions> functions);
  void check(int code, const char* what) const;
  std::shared_ptr<const Functions> functions_;
};

}  // namespace gallop::compile

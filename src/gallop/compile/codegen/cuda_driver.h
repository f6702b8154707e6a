#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gallop::compile {

/// The few functions of the GPU's driver (docs.nvidia.com/cuda/cuda-driver-api) that generated
/// kernels need, loaded at run time. All but open() throw DeviceError with what the driver says.
class CudaDriver {
 public:
  /// Null where there is no driver; then `missing` says why.
  static std::shared_ptr<const CudaDriver> open(std::string& missing,
                                                const std::string& name = "libcuda.so.1");

  /// The compute capability of a GPU, 90 for 9.0.
  int capability(int device) const;

  /// Loads a cubin or PTX for a GPU, for as long as the pointer lives.
  std::shared_ptr<void> load(const std::string& image, int device) const;
  /// A kernel in it.
  void* find(const std::shared_ptr<void>& module, const std::string& name) const;

  /// Starts a kernel of a GPU whose only argument are the slots, which are copied.
  void launch(int device, void* function, std::array<uint32_t, 2> grid,
              std::array<uint32_t, 2> block, void* stream, std::vector<uint64_t>& slots) const;

 private:
  struct Functions;
  /// A thread has no context before it first calls CUDA's runtime: it gets the GPU's primary one,
  /// which the runtime, and so LibTorch, has too.
  void need_context(int device) const;
  explicit CudaDriver(std::shared_ptr<const Functions> functions);
  void check(int code, const char* what) const;
  std::shared_ptr<const Functions> functions_;
};

}  // namespace gallop::compile

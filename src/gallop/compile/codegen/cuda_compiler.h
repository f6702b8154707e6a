#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/compile/codegen/compiler.h"

namespace gallop::compile {

/// A binary that a GPU's driver can load, or the reason why there is none.
struct CudaBinary {
  std::string image;            ///< A cubin, or PTX if NVRTC is older than the GPU; else empty.
  std::string fallback_reason;  ///< As CompiledKernel::fallback_reason.
};

struct CudaCompilerOptions {
  /// Paths or names of NVRTC; the first that can be loaded is used. Empty: versions 13 and 12
  /// next to LibTorch, then in the system's library search path.
  std::vector<std::string> libraries;
  fs::path cache_folder = user_cache_folder() / "kernels";
  int64_t cache_bytes = int64_t{256} << 20;  ///< Beyond it, least recently used kernels go.
  int threads = 2;
};

/// Compiles CUDA C++ in the background with NVRTC, which needs no GPU, and keeps the binaries on
/// disk. Missing tools do not throw: each result reports the fallback.
class CudaCompiler {
 public:
  explicit CudaCompiler(CudaCompilerOptions options = {});
  /// Waits for compilations in progress and reports pending ones as cancelled. Must be destroyed
  /// before main() returns, since NVRTC's own objects are destroyed afterwards.
  ~CudaCompiler();
  CudaCompiler(const CudaCompiler&) = delete;
  CudaCompiler& operator=(const CudaCompiler&) = delete;

  /// Starts to compile all of them, each after cuda_prefix(), for a GPU of this compute capability
  /// (90 for 9.0). Results are in the order of `kernels`; a resubmitted kernel keeps its first one.
  std::vector<std::shared_future<CudaBinary>> submit(const std::vector<KernelSource>& kernels,
                                                     int capability);

  /// Whether NVRTC is available; else `why` says what was searched for.
  bool is_there(std::string& why);

  /// Number of runs of NVRTC so far.
  int64_t runs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gallop::compile

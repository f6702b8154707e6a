#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/compile/codegen/compiler.h"

namespace gallop::compile {

/// What a GPU's driver loads, or why there is none.
struct CudaBinary {
  std::string image;            ///< A cubin, or PTX where NVRTC is older than the GPU; else empty.
  std::string fallback_reason;  ///< As CompiledKernel::fallback_reason.
};

struct CudaCompilerOptions {
  /// Files or names of NVRTC, of which the first that can be loaded is taken; empty: versions 13
  /// and 12 beside LibTorch, then where the system looks for libraries.
  std::vector<std::string> libraries;
  fs::path cache_folder = user_cache_folder() / "kernels";
  int64_t cache_bytes = int64_t{256} << 20;  ///< Oldest kernels go beyond that.
  int threads = 2;
};

/// Compiles CUDA C++ in the background with NVRTC, which needs no GPU, and keeps the binaries on
/// disk. Nothing that a machine may lack is an exception: each result says what is lost.
class CudaCompiler {
 public:
  explicit CudaCompiler(CudaCompilerOptions options = {});
  /// What waits is told that the program ended; what NVRTC is at is waited for. To be destroyed
  /// while main() runs: when that has ended, so have objects of NVRTC.
  ~CudaCompiler();
  CudaCompiler(const CudaCompiler&) = delete;
  CudaCompiler& operator=(const CudaCompiler&) = delete;

  /// Starts with all of them, each behind cuda_prefix(), for a GPU of this compute capability (90
  /// for 9.0). Results come in the order given; a kernel that was asked for before keeps its own.
  std::vector<std::shared_future<CudaBinary>> submit(const std::vector<KernelSource>& kernels,
                                                     int capability);

  /// Whether there is an NVRTC; else `why` says what was looked for.
  bool is_there(std::string& why);

  /// Runs of NVRTC so far.
  int64_t runs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gallop::compile

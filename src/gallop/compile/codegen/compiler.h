#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/kernel/isa.h"

namespace gallop::compile {

/// The source of one C++ function for the compiler: extern "C" with the unique name
/// `symbol`.
struct KernelSource {
  std::string symbol;
  std::string text;
};

/// A function in a loaded library, or the reason why it could not be compiled.
struct CompiledKernel {
  void* function = nullptr;       ///< Null if the kernel could not be compiled.
  std::shared_ptr<void> library;  ///< Keeps the function in memory.
  /// One line: the fallback and its reason; empty if there is none. If `function` is set, the line
  /// says why the disk cache cannot be used.
  std::string fallback_reason;
};

struct CompilerOptions {
  /// Program and first arguments; empty: $CXX, else the first of c++, g++ and clang++ in $PATH.
  std::string command;
  fs::path cache_folder = user_cache_folder() / "kernels";
  int64_t cache_bytes = int64_t{256} << 20;  ///< Beyond it, least recently used kernels go.
  kernel::Isa isa = kernel::best_isa();
  int threads = 2;                           ///< Maximum number of concurrent compiler processes.
  int64_t queue = 4096;                      ///< Maximum number of pending kernels.
  double timeout_seconds = 120;              ///< A compiler that runs longer is killed.
  std::vector<std::string> nvrtc{};          ///< As CudaCompilerOptions::libraries.
  std::string cuda_driver = "libcuda.so.1";  ///< The library that loads kernels on a GPU.
};

class CudaCompiler;

/// Compiles kernels in the background with the system's compiler and keeps them on disk, where
/// several processes may share them. Missing tools do not throw: each kernel's result reports the
/// fallback.
class KernelCompiler {
 public:
  explicit KernelCompiler(CompilerOptions options = {});
  /// Kills running compilers; pending results report the cancellation.
  ~KernelCompiler();
  KernelCompiler(const KernelCompiler&) = delete;
  KernelCompiler& operator=(const KernelCompiler&) = delete;

  /// Starts to compile all of them in the background. Several share one file that includes `prefix`
  /// once. Results are in the order of `kernels`; a symbol that was submitted before keeps its
  /// first result.
  std::vector<std::shared_future<CompiledKernel>> submit(const std::string& prefix,
                                                         std::vector<KernelSource> kernels);

  /// Number of runs of the system's compiler so far.
  int64_t runs() const;

  /// The compiler for GPUs with the same options, created on first use.
  CudaCompiler& cuda();
  const std::string& cuda_driver() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gallop::compile

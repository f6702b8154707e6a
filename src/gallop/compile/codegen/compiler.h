#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/kernel/isa.h"

namespace gallop::compile {

/// One function in C++ for the compiler: extern "C" with the name `symbol`, which no other text
/// has.
struct KernelSource {
  std::string symbol;
  std::string text;
};

/// A function in a loaded library, or why there is none.
struct CompiledKernel {
  void* function = nullptr;       ///< Null where the kernel could not be made.
  std::shared_ptr<void> library;  ///< Keeps the function in memory.
  /// One line that says what is lost and why; empty where nothing is. Where there is a function, it
  /// is that the disk cache cannot be used.
  std::string fallback_reason;
};

struct CompilerOptions {
  /// Program and first arguments; empty: $CXX, else the first of c++, g++ and clang++ in $PATH.
  std::string command;
  fs::path cache_folder = user_cache_folder() / "kernels";
  int64_t cache_bytes = int64_t{256} << 20;  ///< Oldest kernels go beyond that.
  kernel::Isa isa = kernel::best_isa();
  int threads = 2;                           ///< Compilers at once.
  int64_t queue = 4096;                      ///< Kernels that may wait; further ones are refused.
  double timeout_seconds = 120;              ///< After it a compiler is ended.
  std::vector<std::string> nvrtc{};          ///< As CudaCompilerOptions::libraries.
  std::string cuda_driver = "libcuda.so.1";  ///< What loads kernels on a GPU.
};

class CudaCompiler;

/// Compiles kernels in the background with the system's compiler and keeps them on disk, where
/// several processes may share them. Nothing that a machine may lack is an exception: each kernel's
/// result says what is lost.
class KernelCompiler {
 public:
  explicit KernelCompiler(CompilerOptions options = {});
  /// Ends the compilers that run; what waits is told so.
  ~KernelCompiler();
  KernelCompiler(const KernelCompiler&) = delete;
  KernelCompiler& operator=(const KernelCompiler&) = delete;

  /// Starts with all of them in the background, several to a file of `prefix` (which they include
  /// once) and their texts. Results come in the order given; a symbol that this compiler has had
  /// before keeps its result.
  std::vector<std::shared_future<CompiledKernel>> submit(const std::string& prefix,
                                                         std::vector<KernelSource> kernels);

  /// Runs of the system's compiler so far.
  int64_t runs() const;

  /// The compiler for GPUs that goes with it, made when first asked for.
  CudaCompiler& cuda();
  const std::string& cuda_driver() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gallop::compile

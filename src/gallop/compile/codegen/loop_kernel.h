#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/compile/codegen/loop_program.h"

namespace gallop::compile {

/// A LoopProgram that is being compiled, then a function that computes it. Programs of one form
/// share their code, whatever their sizes, strides and constants.
class LoopKernel {
 public:
  /// Starts to compile all of them in the background, each for its device (all for the CPU where
  /// there are none); for one step give them at once. Throws InternalError for a program that is
  /// wrong.
  static std::vector<std::unique_ptr<LoopKernel>> make(std::span<const LoopProgram> programs,
                                                       KernelCompiler& compiler,
                                                       std::span<const c10::Device> devices = {});
  ~LoopKernel();
  LoopKernel(const LoopKernel&) = delete;
  LoopKernel& operator=(const LoopKernel&) = delete;

  /// Whether the compiler is done with it, for better or worse. Takes well under a microsecond.
  bool is_done() const;
  /// Waits for that. True where it can run, else fallback_reason() says why not.
  bool wait() const;
  /// True once it can run.
  bool can_run() const { return is_done() && wait(); }
  /// CompiledKernel::fallback_reason; empty before it is done.
  std::string fallback_reason() const;

  /// By all of LibTorch's threads, of kernels for the CPU. Pointers to the first elements, in the
  /// program's order and format. Throws InternalError where the kernel cannot run.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs) const;
  /// Tensors on the kernel's device, whose formats are checked; strides are the program's business.
  /// On a GPU it is started on LibTorch's current stream.
  void run(std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs) const;

  /// Bytes read and written at least: each element of each operand once.
  int64_t bytes() const;

 private:
  struct State;
  explicit LoopKernel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gallop::compile

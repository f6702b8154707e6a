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

/// A function that computes a LoopProgram, available after its compilation. Programs of the same
/// form share code, whatever their sizes, strides and constants.
class LoopKernel {
 public:
  /// Starts to compile all programs in the background, each for its device (all for the CPU if
  /// `devices` is empty). Pass all programs of a step at once. Throws InternalError for
  /// an invalid program.
  static std::vector<std::unique_ptr<LoopKernel>> make(std::span<const LoopProgram> programs,
                                                       KernelCompiler& compiler,
                                                       std::span<const c10::Device> devices = {});
  ~LoopKernel();
  LoopKernel(const LoopKernel&) = delete;
  LoopKernel& operator=(const LoopKernel&) = delete;

  /// Whether compilation has finished, successfully or not. Takes well under a microsecond.
  bool is_done() const;
  /// Waits for compilation. Whether the kernel can run; else fallback_reason() is the reason.
  bool wait() const;
  /// True once it can run.
  bool can_run() const { return is_done() && wait(); }
  /// CompiledKernel::fallback_reason; empty before it is done.
  std::string fallback_reason() const;

  /// Runs a CPU kernel on LibTorch's intra-op threads. Takes pointers to the first elements, in the
  /// program's order and format. Throws InternalError if the kernel cannot run.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs) const;
  /// Takes tensors on the kernel's device. Checks their data types, but not their strides.
  /// On a GPU the kernel is launched on LibTorch's current stream.
  void run(std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs) const;

  /// Minimum bytes read and written: each element of each operand once.
  int64_t bytes() const;

 private:
  struct State;
  explicit LoopKernel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gallop::compile

#include "unit/compile/emulated_graph.h"

#include <optional>

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/passes/fused_loop.h"
#include "gallop/compile/passes/pointwise.h"
#include "gallop/compile/passes/reductions.h"
#include "gallop/compile/tensor_in.h"
#include "unit/compile/cuda_emulation.h"

namespace gallop::compile {

namespace {

using passes::FusedLoop;
using passes::Group;

/// Graphs whose inputs begin at their memory's start.
class Emulator {
 public:
  Emulator(const Graph& graph, const std::vector<at::Tensor>& inputs, KernelCompiler& compiler)
      : graph_(graph), for_gpu_(graph), compiler_(compiler), bases_(graph.buffers.size()) {
    for (Buffer& buffer : for_gpu_.buffers) buffer.device = {c10::kCUDA, 0};
    for (size_t i = 0; i < graph.buffers.size(); ++i) {
      const Buffer& buffer = graph.buffers[i];
      switch (buffer.kind) {
        case Buffer::Kind::kInput: bases_[i] = inputs[static_cast<size_t>(buffer.input)]; break;
        case Buffer::Kind::kState: bases_[i] = buffer.state; break;
        default: bases_[i] = at::empty({buffer.bytes}, at::kByte);
      }
    }
  }

  EmulatedRun run() {
    EmulatedRun result;
    for (size_t at = 0; at < graph_.nodes.size();) {
      size_t count = 1;
      if (const auto loop = longest_loop(at, count)) {
        run_loop(*loop);
        result.loops += 1;
      } else {
        call(graph_.nodes[at]);
        result.others += 1;
      }
      at += count;
    }
    for (const ViewId output : graph_.outputs) result.outputs.push_back(tensor(output).clone());
    return result;
  }

 private:
  at::Tensor tensor(ViewId id) const {
    const View& view = graph_.views[id];
    return tensor_in(bases_[view.buffer], view.dtype, view.sizes, view.strides, view.offset);
  }

  // For the nodes from `begin` on.
  std::optional<FusedLoop> longest_loop(size_t begin, size_t& count) const {
    const auto uses = uses_of(for_gpu_);
    Group group;
    std::optional<FusedLoop> longest;
    for (size_t at = begin; at < graph_.nodes.size() && group.size() < 32; ++at) {
      const Node& node = for_gpu_.nodes[at];
      if (!passes::is_pointwise(for_gpu_, node) && !passes::reduction_of(for_gpu_, node)) break;
      group.insert(static_cast<int64_t>(at));
      if (auto loop = passes::fused_loop(for_gpu_, uses, group)) {
        longest = std::move(loop);
        count = group.size();
      }
    }
    return longest;
  }

  void run_loop(const FusedLoop& loop) {
    const CudaPlan plan = cuda_plan(loop.program, /*busy_threads=*/1);
    const auto kernel =
        compiler_.submit(emulated_prefix(), std::vector{emulated_source(plan)})[0].get();
    ASSERT_NE(kernel.function, nullptr) << kernel.fallback_reason;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const ViewId input : loop.inputs) inputs.push_back(tensor(input).const_data_ptr());
    for (const LoopOutput& output : loop.outputs) {
      const at::Tensor whole = tensor(loop.results[output.result]);
      const int64_t skipped = output.view.offset - graph_.views[loop.results[output.result]].offset;
      outputs.push_back(static_cast<char*>(whole.data_ptr()) +
                        skipped * static_cast<int64_t>(whole.element_size()));
    }
    EmulatedLoop(plan, kernel)(inputs, outputs, is_aligned(plan, inputs, outputs),
                               /*reversed=*/false);
  }

  void call(const Node& node) {
    torch::jit::Stack stack;
    for (const Operand& operand : node.arguments) {
      if (operand.kind == Operand::Kind::kConstant) {
        stack.push_back(operand.constant);
      } else if (operand.kind == Operand::Kind::kTensor) {
        stack.emplace_back(operand.views[0] == kNone ? at::Tensor() : tensor(operand.views[0]));
      } else {
        c10::List<at::Tensor> list;
        for (const ViewId view : operand.views) list.push_back(tensor(view));
        stack.emplace_back(list);
      }
    }
    node.op.callBoxed(stack);
    for (size_t i = 0; i < node.results.size(); ++i) {
      const ViewId result = node.results[i].views[0];
      if (result != kNone) tensor(result).copy_(stack[i].toTensor());
    }
  }

  const Graph& graph_;
  Graph for_gpu_;
  KernelCompiler& compiler_;
  std::vector<at::Tensor> bases_;
};

}  // namespace

EmulatedRun run_emulated(const Graph& graph, const std::vector<at::Tensor>& inputs,
                         KernelCompiler& compiler) {
  return Emulator(graph, inputs, compiler).run();
}

}  // namespace gallop::compile

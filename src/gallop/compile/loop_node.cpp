#include "gallop/compile/loop_node.h"

#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

namespace gallop::compile {

namespace {

constexpr auto kName = "gallop::loop";

// Runs a generated loop. Its address is the last argument; the node owns it.
void run_loop(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  const auto address = torch::jit::pop(*stack).toInt();
  const auto inputs = torch::jit::pop(*stack).toTensorVector();
  const auto& loop = *reinterpret_cast<const GeneratedLoop*>(address);
  const auto options = at::TensorOptions().device(inputs.at(0).device());
  std::vector<at::Tensor> results;
  results.reserve(loop.results.size());
  for (const View& view : loop.results) {
    results.push_back(at::empty_strided(view.sizes, view.strides, options.dtype(view.dtype)));
  }
  std::vector<at::Tensor> outputs;
  outputs.reserve(loop.outputs.size());
  for (const LoopOutput& output : loop.outputs) {
    const at::Tensor& whole = results[output.result];
    const View& view = output.view;
    outputs.push_back(view.sizes == whole.sizes()
                          ? whole
                          : whole.as_strided(view.sizes, view.strides, view.offset));
  }
  loop.kernel->run(inputs, outputs);
  torch::jit::push(*stack, std::move(results));
}

c10::OperatorHandle loop_operator() {
  static torch::Library definition(torch::Library::FRAGMENT, "gallop", {}, __FILE__, __LINE__);
  static torch::Library on_cpu(torch::Library::IMPL, "gallop", c10::DispatchKey::CPU, __FILE__,
                               __LINE__);
  static torch::Library on_gpu(torch::Library::IMPL, "gallop", c10::DispatchKey::CUDA, __FILE__,
                               __LINE__);
  static const c10::OperatorHandle kHandle = [] {
    definition.def("loop(Tensor[] inputs, int loop) -> Tensor[]");
    on_cpu.impl("loop", torch::CppFunction::makeFromBoxedFunction<&run_loop>());
    on_gpu.impl("loop", torch::CppFunction::makeFromBoxedFunction<&run_loop>());
    return c10::Dispatcher::singleton().findSchemaOrThrow(kName, "");
  }();
  return kHandle;
}

}  // namespace

Node loop_node(std::shared_ptr<const GeneratedLoop> loop, std::vector<ViewId> inputs,
               std::vector<ViewId> results) {
  Node node{.op = loop_operator(), .arguments = {}, .results = {}, .loop = std::move(loop)};
  const auto address = reinterpret_cast<int64_t>(node.loop.get());
  node.arguments.push_back(
      {.kind = Operand::Kind::kTensors, .constant = {}, .views = std::move(inputs)});
  node.arguments.push_back(Operand::of(c10::IValue(address)));
  node.results.push_back(
      {.kind = Operand::Kind::kTensors, .constant = {}, .views = std::move(results)});
  return node;
}

bool is_loop(const Node& node) { return node.loop != nullptr; }

}  // namespace gallop::compile

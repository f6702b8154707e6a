#include "unit/compile/fake_device_graph.h"

#include <limits>
#include <mutex>

#include <ATen/Context.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

namespace gallop::compile {

namespace {

constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

thread_local FakeDeviceGraph* capturing = nullptr;

void keep_call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  capturing->keep(op, *stack);
}

void register_once() {
  static torch::Library library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  static std::once_flag once;
  std::call_once(once,
                 [] { library.fallback(torch::CppFunction::makeFromBoxedFunction<&keep_call>()); });
}

void add_tensors(const c10::IValue& value, std::vector<at::Tensor>& list) {
  if (value.isTensor() && value.toTensor().defined()) list.push_back(value.toTensor());
  if (!value.isTensorList()) return;
  for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(tensor);
}

std::vector<at::Tensor> tensors_in(const c10::IValue* begin, const c10::IValue* end) {
  std::vector<at::Tensor> list;
  for (const c10::IValue* value = begin; value != end; ++value) add_tensors(*value, list);
  return list;
}

bool shares(const at::Tensor& tensor, const std::vector<at::Tensor>& list) {
  for (const at::Tensor& other : list) {
    if (tensor.storage().is_alias_of(other.storage())) return true;
  }
  return false;
}

}  // namespace

void FakeDeviceGraph::keep(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack) {
  const c10::impl::ExcludeDispatchKeyGuard below(kKey);
  const size_t count = op.schema().arguments().size(), base = stack.size() - count;
  Call call{.op = op, .arguments = {stack.begin() + static_cast<ptrdiff_t>(base), stack.end()}};
  const auto given = tensors_in(stack.data() + base, stack.data() + stack.size());
  for (size_t i = 0; i < count; ++i) {
    const auto* alias = op.schema().arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    std::vector<at::Tensor> written;
    add_tensors(stack[base + i], written);
    for (const at::Tensor& tensor : written) saved_.push_back({tensor, tensor.clone()});
  }
  op.callBoxed(stack);
  for (const at::Tensor& made : tensors_in(stack.data() + base, stack.data() + stack.size())) {
    if (!shares(made, given)) call.results.push_back(made);
  }
  calls_.push_back(std::move(call));
}

void FakeDeviceGraph::capture(const std::function<void()>& work) {
  register_once();
  auto generator = at::globalContext().defaultGenerator(c10::kCPU);
  const at::Tensor random = generator.get_state();
  capturing = this;
  {
    const c10::impl::IncludeDispatchKeyGuard on(kKey);
    work();
  }
  capturing = nullptr;
  generator.set_state(random);
  for (auto saved = saved_.rbegin(); saved != saved_.rend(); ++saved) {
    saved->tensor.copy_(saved->before);
  }
  saved_.clear();
  // No work was done yet.
  for (const Call& call : calls_) {
    for (const at::Tensor& result : call.results) {
      if (result.is_floating_point()) result.fill_(std::numeric_limits<double>::quiet_NaN());
    }
  }
}

void FakeDeviceGraph::replay() {
  for (const Call& call : calls_) {
    std::vector<c10::IValue> stack = call.arguments;
    const auto given = tensors_in(stack.data(), stack.data() + stack.size());
    call.op.callBoxed(stack);
    size_t at = 0;
    for (const at::Tensor& made : tensors_in(stack.data(), stack.data() + stack.size())) {
      if (!shares(made, given)) call.results.at(at++).copy_(made);
    }
  }
}

std::unique_ptr<DeviceGraph> make_fake_graph(c10::Device, std::string&) {
  return std::make_unique<FakeDeviceGraph>();
}

}  // namespace gallop::compile

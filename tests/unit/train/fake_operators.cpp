#include "unit/train/fake_operators.h"

#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/TensorBase.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceType.h>
#include <torch/library.h>

#include "unit/data/fake_accelerator.h"

namespace gallop::train {

namespace {

constexpr auto kKey = c10::DispatchKey::PrivateUse1;

/// Random numbers come from the CPU generator.
struct Hooks final : at::PrivateUse1HooksInterface {
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

/// The device tensors of one call and their CPU counterparts in the same memory.
class Twins {
 public:
  at::Tensor on_cpu(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_privateuseone()) return tensor;
    // A tensor without elements may be resized later.
    at::Tensor twin = tensor.numel() == 0
                          ? at::empty(tensor.sizes(), tensor.dtype())
                          : at::from_blob(
                                tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                                [keep = tensor.storage()](void*) {}, tensor.dtype());
    pairs_.emplace_back(tensor, twin);
    return twin;
  }

  // An argument maps back to itself; a view of one is a view on the device, too.
  at::Tensor on_device(const at::Tensor& result) const {
    if (!result.defined() || !result.is_cpu()) return result;
    for (const auto& [tensor, twin] : pairs_) {
      if (!result.is_same(twin)) continue;
      if (result.sizes() != tensor.sizes()) {
        auto* const grown = tensor.unsafeGetTensorImpl();
        grown->set_storage_keep_dtype(on_device(result.alias()).storage());
        grown->set_sizes_and_strides(result.sizes(), result.strides());
      }
      return tensor;
    }
    for (const auto& [tensor, twin] : pairs_) {
      if (tensor.numel() > 0 && result.storage().is_alias_of(twin.storage())) {
        return wrapped(result, tensor.storage(), result.storage_offset() + tensor.storage_offset());
      }
    }
    c10::DataPtr data(
        result.storage().mutable_data(), new at::Tensor(result),
        [](void* kept) { delete static_cast<at::Tensor*>(kept); }, data::fake_accelerator());
    return wrapped(
        result,
        c10::Storage(c10::Storage::use_byte_size_t(), result.storage().nbytes(), std::move(data)),
        result.storage_offset());
  }

 private:
  static at::Tensor wrapped(const at::Tensor& like, c10::Storage storage, int64_t offset) {
    auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                           c10::DispatchKeySet(kKey), like.dtype());
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), offset);
    return tensor;
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

template <typename Map>
c10::IValue mapped(const c10::IValue& value, const Map& map) {
  if (value.isTensor()) return map(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(map(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(map(*tensor)) : std::nullopt);
    }
    return list;
  }
  if (value.isDevice() && value.toDevice() == data::fake_accelerator()) {
    return c10::Device(c10::kCPU);
  }
  return value;
}

void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  data::run_current_stream();
  if (op.schema().name() == "aten::_local_scalar_dense") data::note_host_wait();
  Twins twins;
  const size_t count = op.schema().arguments().size(), base = stack->size() - count;
  for (size_t i = base; i < stack->size(); ++i) {
    (*stack)[i] = mapped((*stack)[i], [&](const at::Tensor& t) { return twins.on_cpu(t); });
  }
  op.callBoxed(stack);
  for (size_t i = base; i < stack->size(); ++i) {
    (*stack)[i] = mapped((*stack)[i], [&](const at::Tensor& t) { return twins.on_device(t); });
  }
}

}  // namespace

void register_fake_operators() {
  static torch::Library library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  static const bool registered = [] {
    data::fake_accelerator();
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&call>());
    c10::register_privateuse1_backend("fake");
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    return true;
  }();
  (void)registered;
}

}  // namespace gallop::train

#pragma once

// Only for sources of kernel/: this header includes torch/library.h.
#include <optional>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace gallop::kernel {

/// A kernel as an operator "gallop::NAME" of LibTorch's dispatcher, where profilers, summaries and
/// the step compiler see it like LibTorch's own. It has no autograd formula: callers provide the
/// gradient. `on_meta`, if given, computes its results for meta tensors, and `on_cuda` computes
/// them on a GPU. Created once, on first use:
///
///     static const Operator add("add(Tensor a, Tensor b) -> Tensor", add_on_cpu);
///     return add(a, b);
template <typename Result, typename... Arguments>
class Operator {
 public:
  Operator(const char* schema, Result (*on_cpu)(Arguments...),
           Result (*on_meta)(Arguments...) = nullptr, Result (*on_cuda)(Arguments...) = nullptr)
      : definition_(torch::Library::FRAGMENT, "gallop", {}, __FILE__, __LINE__),
        implementation_(torch::Library::IMPL, "gallop", c10::DispatchKey::CPU, __FILE__, __LINE__),
        on_meta_(torch::Library::IMPL, "gallop", c10::DispatchKey::Meta, __FILE__, __LINE__),
        on_cuda_(torch::Library::IMPL, "gallop", c10::DispatchKey::CUDA, __FILE__, __LINE__) {
    const std::string text(schema), name = text.substr(0, text.find('('));
    definition_.def(schema);
    implementation_.impl(name.c_str(), on_cpu);
    if (on_meta != nullptr) on_meta_.impl(name.c_str(), on_meta);
    if (on_cuda != nullptr) on_cuda_.impl(name.c_str(), on_cuda);
    handle_ = c10::Dispatcher::singleton()
                  .findSchemaOrThrow(("gallop::" + name).c_str(), "")
                  .template typed<Result(Arguments...)>();
  }

  Result operator()(Arguments... arguments) const {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return handle_->call(std::forward<Arguments>(arguments)...);
  }

  const c10::OperatorHandle& handle() const { return *handle_; }

 private:
  torch::Library definition_, implementation_, on_meta_, on_cuda_;
  std::optional<c10::TypedOperatorHandle<Result(Arguments...)>> handle_;
};

/// A tensor that may be undefined, as an optional argument of an operator.
inline std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

/// Increments the version counters of tensors that one of our operators has changed, which it does
/// not do itself, for autograd and for caches of derived tensors.
inline void count_changes(at::TensorList tensors) {
  for (const at::Tensor& tensor : tensors) tensor.unsafeGetTensorImpl()->bump_version();
}

}  // namespace gallop::kernel

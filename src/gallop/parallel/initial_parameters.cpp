#include "gallop/parallel/initial_parameters.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"

namespace gallop::parallel {

at::Tensor CreationOrder::empty(at::IntArrayRef sizes) {
  created_.push_back(at::empty(sizes, at::TensorOptions(at::kFloat).device(at::kMeta)));
  return created_.back();
}

std::vector<std::optional<size_t>> CreationOrder::parameters(const NamedTensors& parameters) const {
  std::map<const at::TensorImpl*, size_t> indices;
  for (size_t i = 0; i < parameters.size(); ++i) {
    indices.emplace(parameters[i].tensor.unsafeGetTensorImpl(), i);
  }
  std::vector<std::optional<size_t>> order;
  std::vector<bool> is_created(parameters.size());
  for (const at::Tensor& tensor : created_) {
    const auto found = indices.find(tensor.unsafeGetTensorImpl());
    order.push_back(found != indices.end() ? std::optional(found->second) : std::nullopt);
    if (order.back()) is_created[*order.back()] = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].tensor.requires_grad() && !is_created[i]) return {};
  }
  return order;
}

at::Tensor InitialParameters::empty(at::IntArrayRef sizes) {
  if (last_) places_->release_parameter(*std::exchange(last_, std::nullopt));
  if (next_ >= order_.size()) throw InternalError("a model creates other parameters than planned");
  const std::optional<size_t> parameter = order_[next_++];
  const at::NoGradGuard no_grad;
  at::Tensor place = parameter ? places_->place(*parameter) : at::Tensor();
  if (!place.defined()) return at::empty(sizes, at::TensorOptions(at::kFloat));
  if (place.sizes() != sizes) throw InternalError("a model creates other parameters than planned");
  last_ = parameter;
  return place;
}

}  // namespace gallop::parallel

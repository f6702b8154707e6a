#include "gallop/compile/shadows.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>

#include "gallop/compile/graph.h"

namespace gallop::compile {

namespace {

constexpr int64_t kNever = -1;

bool is_same(const at::Tensor& a, const at::Tensor& b) {
  return a.has_storage() && a.is_alias_of(b) && a.storage_offset() == b.storage_offset() &&
         a.scalar_type() == b.scalar_type() && a.numel() == b.numel();
}

}  // namespace

at::Tensor Shadows::of(const at::Tensor& state) {
  for (const Shadow& shadow : shadows_) {
    if (is_same(shadow.parameter, state)) return shadow.copy;
  }
  for (const at::Tensor& parameter : parameters_) {
    if (!is_same(parameter, state) || parameter.is_inference()) continue;
    at::Tensor copy = at::empty_strided(parameter.sizes(), parameter.strides(),
                                        parameter.options().dtype(at::kBFloat16));
    shadows_.push_back({.parameter = parameter, .copy = copy, .version = kNever});
    return copy;
  }
  return {};
}

void Shadows::refresh() {
  for (Shadow& shadow : shadows_) {
    const auto version = static_cast<int64_t>(shadow.parameter._version());
    if (version == shadow.version) continue;
    const at::NoGradGuard no_grad;
    shadow.copy.copy_(shadow.parameter);
    shadow.version = version;
  }
}

void Shadows::overlook_changes() {
  for (Shadow& shadow : shadows_) {
    if (shadow.version != kNever)
      shadow.version = static_cast<int64_t>(shadow.parameter._version());
  }
}

void Shadows::distrust() {
  for (Shadow& shadow : shadows_) shadow.version = kNever;
}

bool Shadows::are_left_behind_by(const Graph& graph) const {
  std::vector<bool> written(graph.buffers.size());
  for (const Node& node : graph.nodes) {
    for (const Access& access : accesses_of(node)) {
      if (access.writes) written[graph.views[access.view].buffer] = true;
    }
  }
  const auto writes = [&](const at::Tensor& tensor) {
    for (size_t id = 0; id < graph.buffers.size(); ++id) {
      const Buffer& buffer = graph.buffers[id];
      const bool is_its = buffer.kind == Buffer::Kind::kState && buffer.state.is_alias_of(tensor);
      if (is_its && written[id]) return true;
    }
    return false;
  };
  return std::any_of(shadows_.begin(), shadows_.end(), [&](const Shadow& shadow) {
    return writes(shadow.parameter) && !writes(shadow.copy);
  });
}

bool Shadows::are_right() const {
  const at::NoGradGuard no_grad;
  return std::all_of(shadows_.begin(), shadows_.end(), [](const Shadow& shadow) {
    const at::Tensor wanted = shadow.parameter.to(at::kBFloat16);
    return at::equal(shadow.copy.view(at::kShort), wanted.view(at::kShort));
  });
}

}  // namespace gallop::compile

#include "gallop/compile/bf16_weight_cache.h"

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

at::Tensor Bf16WeightCache::of(const at::Tensor& state) {
  for (const Entry& entry : entries_) {
    if (is_same(entry.parameter, state)) return entry.copy;
  }
  for (const at::Tensor& parameter : parameters_) {
    if (!is_same(parameter, state) || parameter.is_inference()) continue;
    at::Tensor copy = at::empty_strided(parameter.sizes(), parameter.strides(),
                                        parameter.options().dtype(at::kBFloat16));
    entries_.push_back({.parameter = parameter, .copy = copy, .version = kNever});
    return copy;
  }
  return {};
}

void Bf16WeightCache::refresh() {
  for (Entry& entry : entries_) {
    const auto version = static_cast<int64_t>(entry.parameter._version());
    if (version == entry.version) continue;
    const at::NoGradGuard no_grad;
    entry.copy.copy_(entry.parameter);
    entry.version = version;
  }
}

void Bf16WeightCache::ignore_trial_writes() {
  for (Entry& entry : entries_) {
    if (entry.version != kNever) entry.version = static_cast<int64_t>(entry.parameter._version());
  }
}

void Bf16WeightCache::invalidate() {
  for (Entry& entry : entries_) entry.version = kNever;
}

bool Bf16WeightCache::are_stale_after(const Graph& graph) const {
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
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return writes(entry.parameter) && !writes(entry.copy);
  });
}

bool Bf16WeightCache::is_consistent() const {
  const at::NoGradGuard no_grad;
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    const at::Tensor wanted = entry.parameter.to(at::kBFloat16);
    return at::equal(entry.copy.view(at::kShort), wanted.view(at::kShort));
  });
}

}  // namespace gallop::compile

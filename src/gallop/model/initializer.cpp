#include "gallop/model/initializer.h"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/tensor/tensor_memory.h"

namespace gallop::model {

namespace {

struct NamedKind {
  const char* name;
  InitScheme::Kind kind;
};

constexpr NamedKind kKinds[] = {
    {"default", InitScheme::Kind::kDefault},
    {"xavier-uniform", InitScheme::Kind::kXavierUniform},
    {"xavier-normal", InitScheme::Kind::kXavierNormal},
    {"kaiming-uniform", InitScheme::Kind::kKaimingUniform},
    {"kaiming-normal", InitScheme::Kind::kKaimingNormal},
    {"dirac", InitScheme::Kind::kDirac},
};

struct Fans {
  double in;
  double out;
};

// fan_in and fan_out of a weight.
Fans fans_of(at::IntArrayRef sizes) {
  double window = 1;
  for (size_t i = 2; i < sizes.size(); ++i) window *= static_cast<double>(sizes[i]);
  return {static_cast<double>(sizes[1]) * window, static_cast<double>(sizes[0]) * window};
}

}  // namespace

const std::vector<std::string>& init_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& entry : kKinds) list.emplace_back(entry.name);
    return list;
  }();
  return names;
}

InitScheme parse_init(const std::string& name) {
  for (const auto& entry : kKinds) {
    if (name == entry.name) return {.kind = entry.kind};
  }
  throw UsageError("no initialization is called '" + name + "'; it is " + join_names(init_names()));
}

Initializer::Initializer(InitialWeights weights)
    : sizes_only_(weights.sizes_only), generator_(at::detail::createCPUGenerator(weights.seed)) {}

at::Tensor Initializer::empty(at::IntArrayRef sizes) const {
  if (TensorMemory* const memory = TensorMemoryScope::current()) return memory->empty(sizes);
  const auto device = sizes_only_ ? at::kMeta : at::kCPU;
  return at::empty(sizes, at::TensorOptions().dtype(at::kFloat).device(device));
}

at::Tensor Initializer::constant(at::IntArrayRef sizes, double value) {
  return empty(sizes).fill_(value);
}

at::Tensor Initializer::counter() {
  const auto device = sizes_only_ ? at::kMeta : at::kCPU;
  return at::zeros({}, at::TensorOptions().dtype(at::kLong).device(device));
}

at::Tensor Initializer::uniform(at::IntArrayRef sizes, double bound) {
  auto tensor = empty(sizes);
  return sizes_only_ ? tensor : tensor.uniform_(-bound, bound, generator_);
}

at::Tensor Initializer::dirac(at::IntArrayRef sizes, double bound) {
  auto tensor = uniform(sizes, bound);
  if (sizes_only_) return tensor;
  for (int64_t channel = 0; channel < std::min(sizes[0], sizes[1]); ++channel) {
    at::Tensor window = tensor[channel].zero_()[channel];
    while (window.dim() > 0) window = window[window.size(0) / 2];
    window.fill_(1);
  }
  return tensor;
}

at::Tensor Initializer::normal(at::IntArrayRef sizes, double std) {
  auto tensor = empty(sizes);
  return sizes_only_ ? tensor : tensor.normal_(0, std, generator_);
}

at::Tensor Initializer::truncated_normal(at::IntArrayRef sizes, double std, double bound) {
  auto tensor = empty(sizes);
  if (sizes_only_) return tensor;
  // Inverse normal CDF of uniform samples between its values at both bounds.
  const double edge = std::erf(bound / (std * std::sqrt(2.0)));
  return tensor.uniform_(-edge, edge, generator_)
      .erfinv_()
      .mul_(std * std::sqrt(2.0))
      .clamp_(-bound, bound);
}

at::Tensor Initializer::weight(at::IntArrayRef sizes, const InitScheme& scheme) {
  const auto fans = fans_of(sizes);
  const double he_fan = sizes.size() > 2 ? fans.out : fans.in;
  switch (scheme.kind) {
    case InitScheme::Kind::kDefault: return uniform(sizes, 1 / std::sqrt(fans.in));
    case InitScheme::Kind::kXavierUniform:
      return uniform(sizes, std::sqrt(6 / (fans.in + fans.out)));
    case InitScheme::Kind::kXavierNormal: return normal(sizes, std::sqrt(2 / (fans.in + fans.out)));
    case InitScheme::Kind::kKaimingUniform: return uniform(sizes, std::sqrt(6 / he_fan));
    case InitScheme::Kind::kKaimingNormal: return normal(sizes, std::sqrt(2 / he_fan));
    case InitScheme::Kind::kDirac: return dirac(sizes, 1 / std::sqrt(fans.in));
    case InitScheme::Kind::kNormal: return normal(sizes, scheme.std);
    case InitScheme::Kind::kTruncatedNormal: return truncated_normal(sizes, scheme.std, 2);
  }
  throw InternalError("unknown initialization");
}

at::Tensor Initializer::bias(int64_t size, int64_t fan_in, const InitScheme& scheme) {
  using Kind = InitScheme::Kind;
  if (scheme.kind == Kind::kNormal || scheme.kind == Kind::kTruncatedNormal)
    return constant(size, 0);
  return uniform(size, 1 / std::sqrt(static_cast<double>(fan_in)));
}

}  // namespace gallop::model

#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "parity/deterministic_weights.h"

// Tensors by name, and their digests in fixtures: the norm, products with vectors of random signs,
// and the first elements.
namespace gallop::model {

inline constexpr size_t kProbes = 4;

inline at::Tensor tensor_of(const std::vector<double>& values, at::IntArrayRef sizes,
                            at::ScalarType type) {
  return at::tensor(values, at::kDouble).view(sizes).to(type);
}

inline at::Tensor integers(const std::string& name, int64_t count, int64_t bound) {
  parity::Hashes hashes(name);
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (auto& value : values) {
    value = static_cast<int64_t>(hashes.next() % static_cast<uint64_t>(bound));
  }
  return at::tensor(values, at::kLong);
}

// Squared norms of the difference (an estimate) and of the fixture.
struct Distance {
  double difference = 0;
  double norm = 0;
  // Some gradients are 0 but for rounding: of a bias that a norm removes.
  static constexpr double kSmall = 1e-3;
  double relative() const { return std::sqrt(difference / std::max(norm, kSmall * kSmall)); }
  Distance& operator+=(const Distance& other) {
    difference += other.difference;
    norm += other.norm;
    return *this;
  }
};

inline Distance distance(const std::string& name, const at::Tensor& tensor,
                         const nlohmann::json& stored) {
  const auto flat = tensor.detach().to(at::kDouble).contiguous().flatten();
  const auto* values = flat.const_data_ptr<double>();
  const int64_t count = flat.numel();
  const double norm = stored[0];
  double sum = 0;
  for (size_t i = 0; i < kProbes; ++i) {
    parity::Hashes hashes("probe" + std::to_string(i) + "/" + name);
    double product = 0;
    for (int64_t j = 0; j < count; ++j) product += values[j] * hashes.next_sign();
    const double difference = product - stored[1 + i].get<double>();
    sum += difference * difference / kProbes;
  }
  double first = 0;
  for (size_t i = 1 + kProbes; i < stored.size(); ++i) {
    const double difference = values[i - 1 - kProbes] - stored[i].get<double>();
    first += difference * difference;
  }
  return {std::max(sum, first), norm * norm};
}

}  // namespace gallop::model

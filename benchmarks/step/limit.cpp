#include "limit.h"

#include <algorithm>
#include <array>

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "gallop/base/clock.h"
#include "gallop/model/summary.h"

namespace gallop {

namespace {

constexpr int kRepeats = 4;

template <typename Function>
double least_seconds(const Function& function) {
  double least = 1e9;
  for (int i = 0; i < kRepeats; ++i) {
    const double begin = monotonic_seconds();
    function();
    least = std::min(least, monotonic_seconds() - begin);
  }
  return least;
}

// The fastest of some shapes: large GEMMs are not always the fastest.
double product_flops_per_second(at::ScalarType format) {
  constexpr std::array<std::array<int64_t, 3>, 4> kShapes = {
      {{4096, 4096, 4096}, {1024, 1024, 1024}, {2048, 1024, 512}, {2048, 256, 256}}};
  double best = 0;
  for (const auto& [m, k, n] : kShapes) {
    const auto a = at::ones({m, k}, format), b = at::ones({k, n}, format);
    const double seconds = least_seconds([&] { at::mm(a, b); });
    best = std::max(best, 2.0 * static_cast<double>(m * k * n) / seconds);
  }
  return best;
}

// The rate of copying arrays as large as the tensors of a step: small models stay in the caches.
double copied_bytes_per_second(double held_bytes) {
  constexpr double kLeast = 1 << 20, kMost = 1 << 29;
  const auto numbers = static_cast<int64_t>(std::clamp(held_bytes, kLeast, kMost) / 8);
  const auto from = at::ones({numbers}), to = at::zeros({numbers});
  // Several copies, as one of small arrays is too short to time.
  const int64_t copies = 1 + (int64_t{1} << 24) / numbers;
  const double seconds = least_seconds([&] {
    for (int64_t i = 0; i < copies; ++i) to.copy_(from);
  });
  return 2 * 4 * static_cast<double>(numbers * copies) / seconds;
}

}  // namespace

Limit limit_of_step(model::Model& model, const model::Task& task, int64_t batch,
                    precision::Precision precision, int64_t moments) {
  const bool bf16 = precision == precision::Precision::kBf16;
  const bool text = task.kind == model::Task::Kind::kText;
  double flops = 0, kept_bytes = 0;
  int64_t parameters = 0;
  bool first = !text;
  for (const auto& layer : summarize(model, task)) {
    double forward = static_cast<double>(layer.flops);
    if (text && layer.type == "attention") {
      forward *= static_cast<double>(task.context + 1) / static_cast<double>(2 * task.context);
    }
    if (forward > 0) flops += (std::exchange(first, false) ? 2 : 3) * forward;
    kept_bytes += static_cast<double>(layer.activation_bytes) * (bf16 ? 0.5 : 1);
    parameters += layer.parameters;
  }
  const auto inputs = static_cast<double>(batch);
  const double parameter_bytes = 4 * static_cast<double>(parameters);
  const auto passes = static_cast<double>(2 + 2 + 2 + 2 * moments);
  const double held_bytes =
      inputs * kept_bytes + static_cast<double>(2 + moments) * parameter_bytes;
  return {.flops = inputs * flops,
          .bytes = 4 * inputs * kept_bytes + passes * parameter_bytes,
          .flops_per_second = product_flops_per_second(bf16 ? at::kBFloat16 : at::kFloat),
          .bytes_per_second = copied_bytes_per_second(held_bytes)};
}

}  // namespace gallop

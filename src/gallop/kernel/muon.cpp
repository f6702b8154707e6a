#include "gallop/kernel/muon.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/muon.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/over_parts.h"

namespace gallop::kernel {

namespace {

using Optional = std::optional<at::Tensor>;
using Doubles = c10::ArrayRef<double>;

// Elements that are summed at once, and the maximum of a small matrix, for a single thread.
constexpr int64_t kChunk = 16384, kSmall = 1 << 20;

bool is_set(const Optional& found_inf) { return found_inf && found_inf->item<float>() != 0; }

std::vector<int64_t> sizes_of(at::TensorList matrices) {
  const at::Tensor& first = matrices.front();
  return {static_cast<int64_t>(matrices.size()), first.size(0),
          first.numel() / std::max<int64_t>(1, first.size(0))};
}

// Calls body(offset, size) for each chunk, on this thread or on all.
void over_chunks(int64_t size, bool alone, const std::function<void(int64_t, int64_t)>& body) {
  over_parts((size + kChunk - 1) / kChunk, alone,
             [&](int64_t i) { body(i * kChunk, std::min(kChunk, size - i * kChunk)); });
}

// Calls body(i, alone) for each of so many matrices of one size: small ones stay in the cache of
// a thread's core from pass to pass.
void over_matrices(int64_t count, int64_t size, const std::function<void(int64_t, bool)>& body) {
  if (size > kSmall || count == 1) {
    for (int64_t i = 0; i < count; ++i) body(i, /*alone=*/false);
    return;
  }
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i, /*alone=*/true);
  });
}

MuonNumbers part(MuonNumbers numbers, int64_t offset, int64_t count) {
  numbers.momentum += offset;
  numbers.gradient += offset;
  numbers.count = count;
  return numbers;
}

void put_direction(const MuonNumbers& all, double eps, bool alone, void* to, bool is_bf16) {
  const auto& kernels = best_kernels<MuonKernels>();
  std::vector<double> sums(static_cast<size_t>((all.count + kChunk - 1) / kChunk));
  over_chunks(all.count, alone, [&](int64_t offset, int64_t count) {
    sums[static_cast<size_t>(offset / kChunk)] = kernels.move(part(all, offset, count));
  });
  double squares = 0;
  for (const double sum : sums) squares += sum;
  const auto factor = static_cast<float>(1 / std::max(std::sqrt(squares), eps));
  over_chunks(all.count, alone, [&](int64_t offset, int64_t count) {
    if (is_bf16) {
      kernels.put_bf16(part(all, offset, count), factor, static_cast<Bf16*>(to) + offset);
    } else {
      kernels.put_fp32(part(all, offset, count), factor, static_cast<float*>(to) + offset);
    }
  });
}

at::Tensor directions_on_cpu(at::TensorList momentums, at::TensorList gradients,
                             const Optional& grad_scale, const Optional& found_inf, double memory,
                             bool nesterov, bool is_bf16, double eps) {
  const auto type = is_bf16 ? at::kBFloat16 : at::kFloat;
  if (is_set(found_inf)) return at::zeros(sizes_of(momentums), at::TensorOptions(type));
  at::Tensor all = at::empty(sizes_of(momentums), at::TensorOptions(type));
  const float scale = grad_scale ? 1 / grad_scale->item<float>() : 1;
  const int64_t size = momentums.front().numel();
  auto* const memory_of_all = static_cast<char*>(all.mutable_data_ptr());
  over_matrices(all.size(0), size, [&](int64_t i, bool alone) {
    const auto at = static_cast<size_t>(i);
    put_direction({.momentum = momentums[at].mutable_data_ptr<float>(),
                   .gradient = gradients[at].const_data_ptr<float>(),
                   .scale = scale,
                   .memory = static_cast<float>(memory),
                   .nesterov = nesterov,
                   .count = size},
                  eps, alone, memory_of_all + i * size * all.element_size(), is_bf16);
  });
  return all;
}

at::Tensor directions_on_meta(at::TensorList momentums, at::TensorList, const Optional&,
                              const Optional&, double, bool, bool is_bf16, double) {
  return at::empty(sizes_of(momentums),
                   at::TensorOptions(is_bf16 ? at::kBFloat16 : at::kFloat).device(at::kMeta));
}

void update_on_cpu(at::TensorList parameters, const at::Tensor& changes, const at::Tensor& lr,
                   const Optional& found_inf, Doubles keep_rates, Doubles rates) {
  if (is_set(found_inf)) return;
  const auto& kernels = best_kernels<MuonKernels>();
  const double rate = lr.item<float>();
  const int64_t size = parameters.front().numel();
  const bool is_bf16 = changes.scalar_type() == at::kBFloat16;
  over_matrices(changes.size(0), size, [&](int64_t i, bool alone) {
    const auto at = static_cast<size_t>(i);
    auto* const p = parameters[at].mutable_data_ptr<float>();
    const auto keep = static_cast<float>(1 - rate * keep_rates[at]);
    const auto go = static_cast<float>(rate * rates[at]);
    over_chunks(size, alone, [&](int64_t offset, int64_t count) {
      const int64_t from = i * size + offset;
      if (is_bf16) {
        kernels.update_bf16(p + offset, static_cast<const Bf16*>(changes.const_data_ptr()) + from,
                            keep, go, count);
      } else {
        kernels.update_fp32(p + offset, changes.const_data_ptr<float>() + from, keep, go, count);
      }
    });
  });
}

void nothing_without_memory(at::TensorList, const at::Tensor&, const at::Tensor&, const Optional&,
                            Doubles, Doubles) {}

}  // namespace

at::Tensor muon_directions(const MuonStep& step, at::ScalarType type, double eps) {
  static const Operator kDirections(
      "muon_directions_(Tensor(a!)[] momentums, Tensor[] gradients, Tensor? grad_scale, Tensor? "
      "found_inf, "
      "float memory, bool nesterov, bool bf16, float eps) -> Tensor",
      directions_on_cpu, directions_on_meta);
  if (step.momentums.empty() || step.gradients.size() != step.momentums.size()) {
    throw InternalError("muon: lists of different lengths");
  }
  return kDirections(step.momentums, step.gradients, optional(step.grad_scale),
                     optional(step.found_inf), step.memory, step.nesterov, type == at::kBFloat16,
                     eps);
}

void muon_update(const MuonStep& step, const at::Tensor& changes) {
  static const Operator kUpdate(
      "muon_update_(Tensor(a!)[] parameters, Tensor changes, Tensor lr, Tensor? found_inf, float[] "
      "keep_rates, float[] rates) -> ()",
      update_on_cpu, nothing_without_memory);
  const size_t count = step.parameters.size();
  if (changes.size(0) != static_cast<int64_t>(count) || step.rates.size() != count ||
      step.keep_rates.size() != count) {
    throw InternalError("muon: lists of different lengths");
  }
  kUpdate(step.parameters, changes.contiguous(), step.lr, optional(step.found_inf), step.keep_rates,
          step.rates);
  count_changes(step.parameters);
}

}  // namespace gallop::kernel

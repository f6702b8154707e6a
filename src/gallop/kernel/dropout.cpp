#include "gallop/kernel/dropout.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/kernel/cpu/dropout.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/cuda/dropout.h"
#include "gallop/kernel/operator.h"

namespace gallop::kernel {

namespace {

// What stands for p, where it varies.
using Share = std::optional<at::Tensor>;

constexpr int64_t kGrain = 16384 / kDropoutGroup;
constexpr double kSteps = 0x1p16;  // Values of the random bits.

DropoutDraw draw_of(double p, const at::Tensor& seed_and_step, int64_t call) {
  const auto* state = seed_and_step.const_data_ptr<int64_t>();
  const auto seed = static_cast<uint64_t>(state[0]), step = static_cast<uint64_t>(state[1]);
  const DropoutShare share = dropout_share(p);
  const auto key = Philox::key_of(seed, Purpose::kDropout);
  return {.key = {key[0], key[1]},
          .counter = {static_cast<uint32_t>(call), static_cast<uint32_t>(step),
                      static_cast<uint32_t>(step >> 32)},
          .threshold = static_cast<float>(share.threshold),
          .scale = static_cast<float>(share.scale)};
}

void check(const at::Tensor& x, double p, const at::Tensor& seed_and_step, int64_t call,
           const Share& share) {
  const bool good_share = !share || (share->device() == x.device() && share->numel() == 1 &&
                                     share->scalar_type() == at::kFloat);
  const bool good_key = seed_and_step.device() == x.device() &&
                        seed_and_step.scalar_type() == at::kLong && seed_and_step.numel() == 2 &&
                        seed_and_step.is_contiguous() && call >= 0 && call < int64_t{1} << 32;
  if (!takes_dropout(x) || !good_key || !good_share || !(share || (p >= 0 && p < 1))) {
    throw InternalError("dropout: unsupported arguments");
  }
}

at::Tensor on_cpu(const at::Tensor& x, double p, const at::Tensor& seed_and_step, int64_t call,
                  const Share& share) {
  check(x, p, seed_and_step, call, share);
  if (share) p = static_cast<double>(share->item<float>());
  at::Tensor y = at::empty_like(x);
  const DropoutDraw draw = draw_of(p, seed_and_step, call);
  const int64_t count = x.numel(), groups = (count + kDropoutGroup - 1) / kDropoutGroup;
  at::parallel_for(0, groups, kGrain, [&](int64_t begin, int64_t end) {
    const int64_t from = begin * kDropoutGroup, some = std::min(count, end * kDropoutGroup) - from;
    const auto& kernels = best_kernels<DropoutKernels>();
    if (x.scalar_type() == at::kFloat) {
      kernels.fp32(draw, begin, data_of<const float>(x) + from, data_of<float>(y) + from, some);
    } else {
      kernels.bf16(draw, begin, data_of<const Bf16>(x) + from, data_of<Bf16>(y) + from, some);
    }
  });
  return y;
}

// From element `begin` of the whole tensor on, which may lie within a group.
template <typename Number, typename Kernel>
void drop_range(const DropoutDraw& draw, const Kernel& kernel, int64_t begin, int64_t count,
                const Number* x, Number* y) {
  const int64_t into = begin % kDropoutGroup;
  int64_t group = begin / kDropoutGroup;
  if (into > 0) {
    Number some[kDropoutGroup] = {};
    const int64_t first = std::min(count, kDropoutGroup - into);
    std::copy(x, x + first, some + into);
    kernel(draw, group, some, some, into + first);
    std::copy(some + into, some + into + first, y);
    x += first, y += first, count -= first, ++group;
  }
  if (count > 0) kernel(draw, group, x, y, count);
}

// The elements of a row of a part. Throws unless they lie in a row of the whole tensor.
int64_t elements_of(c10::IntArrayRef begins, c10::IntArrayRef sizes, int64_t columns) {
  int64_t own = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    own += sizes[i];
    if (begins[i] < 0 || sizes[i] < 0 || begins[i] + sizes[i] > columns) {
      throw InternalError("dropout: not a part of a tensor");
    }
  }
  return own;
}

at::Tensor part_on_cpu(const at::Tensor& x, double p, const at::Tensor& seed_and_step, int64_t call,
                       const Share& share, int64_t rows, int64_t columns, c10::IntArrayRef begins,
                       c10::IntArrayRef sizes) {
  check(x, p, seed_and_step, call, share);
  const int64_t own = elements_of(begins, sizes, columns);
  if (own * rows != x.numel()) throw InternalError("dropout: not a part of a tensor");
  if (share) p = static_cast<double>(share->item<float>());
  at::Tensor y = at::empty_like(x);
  const DropoutDraw draw = draw_of(p, seed_and_step, call);
  const int64_t grain = std::max<int64_t>(1, kGrain * kDropoutGroup / std::max<int64_t>(1, own));
  at::parallel_for(0, rows, grain, [&](int64_t first, int64_t end) {
    const auto& kernels = best_kernels<DropoutKernels>();
    for (int64_t row = first; row < end; ++row) {
      int64_t at = row * own;
      for (size_t i = 0; i < begins.size(); at += sizes[i++]) {
        const int64_t place = row * columns + begins[i];
        if (x.scalar_type() == at::kFloat) {
          drop_range(draw, kernels.fp32, place, sizes[i], data_of<const float>(x) + at,
                     data_of<float>(y) + at);
        } else {
          drop_range(draw, kernels.bf16, place, sizes[i], data_of<const Bf16>(x) + at,
                     data_of<Bf16>(y) + at);
        }
      }
    }
  });
  return y;
}

at::Tensor part_without_memory(const at::Tensor& x, double, const at::Tensor&, int64_t,
                               const Share&, int64_t, int64_t, c10::IntArrayRef, c10::IntArrayRef) {
  return at::empty_like(x);
}

at::Tensor on_cuda(const at::Tensor& x, double p, const at::Tensor& seed_and_step, int64_t call,
                   const Share& share) {
  check(x, p, seed_and_step, call, share);
  return dropout_on_gpu(
      *cuda_launcher_for(x.device()), x, p,
      {.seed_and_step = seed_and_step, .call = call, .share = share.value_or(at::Tensor())});
}

at::Tensor without_memory(const at::Tensor& x, double, const at::Tensor&, int64_t, const Share&) {
  return at::empty_like(x);
}

bool is_plain_on_gpu(const at::Tensor& x) {
  const auto format = x.scalar_type();
  return x.layout() == at::kStrided && x.is_contiguous() && x.numel() > 0 &&
         (format == at::kFloat || format == at::kBFloat16 || format == at::kHalf) &&
         cuda_launcher_for(x.device()) != nullptr;
}

}  // namespace

DropoutShare dropout_share(double p) {
  const double threshold = std::min(std::round(p * kSteps), kSteps - 1);
  return {.threshold = threshold, .scale = kSteps / (kSteps - threshold)};
}

bool takes_dropout(const at::Tensor& x) {
  return x.numel() < int64_t{1} << 35 && (is_plain(x) || is_plain_on_gpu(x));
}

at::Tensor dropout(const at::Tensor& x, double p, const DropoutKey& key, const DropoutPart& part) {
  const Share share = key.share.defined() ? Share(key.share) : std::nullopt;
  if (!part.is_whole()) {
    static const Operator kPart(
        "dropout_part(Tensor x, float p, Tensor seed_and_step, int call, Tensor? share, int rows, "
        "int columns, int[] begins, int[] sizes) -> Tensor",
        part_on_cpu, part_without_memory);
    std::vector<int64_t> begins, sizes;
    for (const auto& [begin, size] : part.ranges) {
      begins.push_back(begin);
      sizes.push_back(size);
    }
    return kPart(x, p, key.seed_and_step, key.call, share, part.rows, part.columns, begins, sizes);
  }
  static const Operator kDropout(
      "dropout(Tensor x, float p, Tensor seed_and_step, int call, Tensor? share=None) -> Tensor",
      on_cpu, without_memory, on_cuda);
  return kDropout(x, p, key.seed_and_step, key.call, share);
}

}  // namespace gallop::kernel

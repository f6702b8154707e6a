#include "gallop/kernel/average.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/average.h"
#include "gallop/kernel/formats.h"
#include "gallop/kernel/isa.h"
#include "gallop/kernel/operator.h"

namespace gallop::kernel {

namespace {

using Kind = AverageRule::Kind;
using Optional = std::optional<at::Tensor>;
using Doubles = c10::ArrayRef<double>;

// Elements that one thread processes at a time.
constexpr int64_t kChunk = 16384;

// Converts the rule to an operator's argument, and back.
std::vector<double> numbers_of(const AverageRule& rule) {
  return {static_cast<double>(rule.kind),  rule.number,
          rule.warmup ? 1. : 0.,           static_cast<double>(rule.start),
          static_cast<double>(rule.every), rule.power,
          static_cast<double>(rule.length)};
}
AverageRule rule_of(Doubles numbers) {
  return {.kind = static_cast<Kind>(static_cast<uint8_t>(numbers[0])),
          .number = numbers[1],
          .warmup = numbers[2] != 0,
          .start = static_cast<int64_t>(numbers[3]),
          .every = static_cast<int64_t>(numbers[4]),
          .power = numbers[5],
          .length = static_cast<int64_t>(numbers[6])};
}

// The fraction of the run between two averages.
double progress_per_average(const AverageRule& rule) {
  return static_cast<double>(rule.every) / static_cast<double>(rule.length);
}

double share_of(const AverageRule& rule, double averaged) {
  if (rule.kind == Kind::kShare) {
    if (rule.power == 0) return rule.number;
    const double progress = std::min(1.0, (averaged + 1) * progress_per_average(rule));
    return 1 - (1 - rule.number) * std::pow(progress, rule.power);
  }
  if (rule.kind == Kind::kEqual) return 1 / (averaged + 1);
  if (averaged == 0) return 1;
  const double decay =
      rule.warmup ? std::min(rule.number, (1 + averaged) / (10 + averaged)) : rule.number;
  return 1 - decay;
}

// Counts the update in `counts` and returns the factor; 0 if no average is due.
double next_share(const AverageRule& rule, const at::Tensor& counts, const Optional& found_inf) {
  if (found_inf && found_inf->item<float>() != 0) return 0;
  auto* const numbers = counts.mutable_data_ptr<double>();
  numbers[0] += 1;
  const auto after = static_cast<int64_t>(numbers[0]) - rule.start;
  if (after < 0 || after % rule.every != 0) return 0;
  const double share = share_of(rule, numbers[1]);
  numbers[1] += 1;
  return share;
}

/// Part of a tensor.
struct Chunk {
  size_t tensor;
  int64_t offset, size;
};

std::vector<Chunk> chunks_of(at::TensorList tensors) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t size = tensors[i].numel();
    for (int64_t offset = 0; offset < size; offset += kChunk) {
      chunks.push_back({i, offset, std::min(kChunk, size - offset)});
    }
  }
  return chunks;
}

template <typename Body>
void over_chunks(at::TensorList tensors, const Body& body) {
  const std::vector<Chunk> chunks = chunks_of(tensors);
  at::parallel_for(0, static_cast<int64_t>(chunks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(chunks[static_cast<size_t>(i)]);
  });
}

void average_on_cpu(at::TensorList averages, at::TensorList values, const at::Tensor& counts,
                    const Optional& found_inf, Doubles rule) {
  const double share = next_share(rule_of(rule), counts, found_inf);
  if (share == 0) return;
  const AverageKernels& kernels = best_kernels<AverageKernels>();
  over_chunks(averages, [&](const Chunk& chunk) {
    float* const average = averages[chunk.tensor].mutable_data_ptr<float>() + chunk.offset;
    const at::Tensor& value = values[chunk.tensor];
    if (is_bf16(value)) {
      const auto* const narrow = static_cast<const Bf16*>(value.const_data_ptr()) + chunk.offset;
      kernels.average_bf16(average, narrow, static_cast<float>(share), chunk.size);
    } else {
      kernels.average(average, value.const_data_ptr<float>() + chunk.offset,
                      static_cast<float>(share), chunk.size);
    }
  });
}

void average_both_on_cpu(at::TensorList averages, at::TensorList values, const at::Tensor& counts,
                         const Optional& found_inf, Doubles rule) {
  const double share = next_share(rule_of(rule), counts, found_inf);
  if (share == 0) return;
  const AverageKernels& kernels = best_kernels<AverageKernels>();
  over_chunks(averages, [&](const Chunk& chunk) {
    kernels.average_both(averages[chunk.tensor].mutable_data_ptr<float>() + chunk.offset,
                         values[chunk.tensor].mutable_data_ptr<float>() + chunk.offset,
                         static_cast<float>(share), chunk.size);
  });
}

void nothing_without_memory(at::TensorList, at::TensorList, const at::Tensor&, const Optional&,
                            Doubles) {}

at::Tensor share_of(const AverageRule& rule, const at::Tensor& averaged) {
  if (rule.kind == Kind::kEqual) return (averaged + 1).reciprocal();
  if (rule.kind == Kind::kShare) {
    if (rule.power == 0) return at::full_like(averaged, rule.number);
    const at::Tensor progress = ((averaged + 1) * progress_per_average(rule)).clamp_max(1);
    return 1 - progress.pow(rule.power) * (1 - rule.number);
  }
  const at::Tensor decay = rule.warmup ? ((averaged + 1) / (averaged + 10)).clamp_max(rule.number)
                                       : at::full_like(averaged, rule.number);
  return at::where(averaged.eq(0), at::ones_like(averaged), 1 - decay);
}

// average() by LibTorch's operators, without synchronization with the host.
void average_by_operators(const AverageStep& step, bool both) {
  const AverageRule& rule = step.rule;
  const at::Tensor updates = step.counts.select(0, 0), averaged = step.counts.select(0, 1);
  const at::Tensor happened =
      step.found_inf.defined() ? step.found_inf.eq(0) : at::ones_like(updates, at::kBool);
  updates.add_(happened.to(at::kDouble));
  const at::Tensor after = updates - static_cast<double>(rule.start);
  const at::Tensor due = happened.logical_and(after.ge(0))
                             .logical_and(after.remainder(static_cast<double>(rule.every)).eq(0));
  const at::Tensor share = share_of(rule, averaged);
  for (size_t i = 0; i < step.averages.size(); ++i) {
    const at::Tensor &average = step.averages[i], &value = step.values[i];
    const auto format = average.scalar_type();
    const at::Tensor next = at::lerp(average, value.to(format), share.to(format));
    if (both) value.copy_(at::where(due, next, value));
    average.copy_(at::where(due, next, average));
  }
  averaged.add_(due.to(at::kDouble));
}

bool is_for_our_kernel(at::TensorList tensors) {
  return kernels_enabled() && std::all_of(tensors.begin(), tensors.end(), [](const auto& t) {
           return t.device().is_cpu() && t.scalar_type() == c10::kFloat;
         });
}

void check(const AverageStep& step, bool both) {
  const bool are_bf16 = std::any_of(step.values.begin(), step.values.end(), is_bf16);
  if ((both && are_bf16) || step.averages.size() != step.values.size() || step.rule.every < 1) {
    throw InternalError("average: invalid lists or rule");
  }
}

}  // namespace

void average(const AverageStep& step) {
  static const Operator kAverage(
      "average_(Tensor(a!)[] averages, Tensor[] values, Tensor(b!) counts, Tensor? found_inf, "
      "float[] "
      "rule) -> ()",
      average_on_cpu, nothing_without_memory);
  check(step, /*both=*/false);
  if (!is_for_our_kernel(step.averages)) return average_by_operators(step, /*both=*/false);
  kAverage(step.averages, step.values, step.counts, optional(step.found_inf),
           numbers_of(step.rule));
}

void average_both(const AverageStep& step) {
  static const Operator kAverageBoth(
      "average_both_(Tensor(a!)[] averages, Tensor(b!)[] values, Tensor(c!) counts, Tensor? "
      "found_inf, "
      "float[] rule) -> ()",
      average_both_on_cpu, nothing_without_memory);
  check(step, /*both=*/true);
  if (!is_for_our_kernel(step.averages)) return average_by_operators(step, /*both=*/true);
  kAverageBoth(step.averages, step.values, step.counts, optional(step.found_inf),
               numbers_of(step.rule));
  count_changes(step.values);
}

}  // namespace gallop::kernel

#include "gallop/model/functional/dropout.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/kernel/dropout.h"
#include "gallop/kernel/isa.h"
#include "gallop/kernel/stock_operators.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double p,
                            const at::Tensor& seed_and_step, int64_t call,
                            const std::optional<at::Tensor>& scheduled,
                            const kernel::DropoutPart& part) {
    const at::Tensor share = scheduled.value_or(at::Tensor());
    context->save_for_backward({seed_and_step, share});
    context->saved_data["p"] = p;
    context->saved_data["call"] = call;
    std::vector<int64_t> numbers{part.rows, part.columns};
    for (const auto& [begin, size] : part.ranges) {
      numbers.push_back(begin);
      numbers.push_back(size);
    }
    context->saved_data["part"] = numbers;
    return kernel::dropout(x, p, {.seed_and_step = seed_and_step, .call = call, .share = share},
                           part);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("dropout");
    const variable_list saved = context->get_saved_variables();
    const kernel::DropoutKey key{
        .seed_and_step = saved[0], .call = context->saved_data["call"].toInt(), .share = saved[1]};
    const std::vector<int64_t> numbers = context->saved_data["part"].toIntVector();
    kernel::DropoutPart part{.rows = numbers[0], .columns = numbers[1]};
    for (size_t i = 2; i < numbers.size(); i += 2) {
      part.ranges.push_back({numbers[i], numbers[i + 1]});
    }
    return {
        kernel::dropout(gradients[0].contiguous(), context->saved_data["p"].toDouble(), key, part),
        {},
        {},
        {},
        {},
        {}};
  }
};

at::Tensor drawn_seed() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  at::Tensor seed_and_step = at::empty({2}, at::kLong);
  auto* numbers = seed_and_step.mutable_data_ptr<int64_t>();
  const std::scoped_lock lock(generator.mutex());
  numbers[0] =
      static_cast<int64_t>(at::check_generator<at::CPUGeneratorImpl>(generator)->random64());
  numbers[1] = 0;
  return seed_and_step;
}

// Dropout by LibTorch's operators, with p as a tensor.
at::Tensor dropped(const at::Tensor& x, const at::Tensor& share) {
  const at::Tensor kept = at::rand(x.sizes(), x.options().dtype(at::kFloat)).ge(share);
  return x * (kept / (1 - share)).to(x.scalar_type());
}

// Thread-local, so that layers deep in a model find it, like LibTorch's autocast state.
thread_local DropoutScope* active = nullptr;

}  // namespace

DropoutScope::DropoutScope(at::Tensor seed_and_step, at::Tensor share)
    : DropoutScope(DropoutPlace{
          .seed_and_step = std::move(seed_and_step), .calls = 0, .share = std::move(share)}) {}

DropoutScope::DropoutScope(DropoutPlace place)
    : place_(std::move(place)), outer_(std::exchange(active, this)) {}

DropoutScope::~DropoutScope() { active = outer_; }

DropoutPlace DropoutScope::place() { return active == nullptr ? DropoutPlace() : active->place_; }

bool dropout_varies() { return active != nullptr && active->place_.share.defined(); }

// The next dropout of the active scope, if any; otherwise a place with a fresh seed.
DropoutPlace next_place() {
  if (active == nullptr || !active->place_.seed_and_step.defined()) {
    return {.seed_and_step = drawn_seed(), .calls = 1};
  }
  active->place_.calls += 1;
  return active->place_;
}

std::vector<int64_t> memory_order(const at::Tensor& x) {
  std::vector<int64_t> order(static_cast<size_t>(x.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t one, int64_t other) { return x.stride(one) > x.stride(other); });
  return order;
}

std::vector<int64_t> places_in(const std::vector<int64_t>& order) {
  std::vector<int64_t> places(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    places[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return places;
}

namespace {

// `share`, if defined, replaces p.
at::Tensor by_kernel(const at::Tensor& x, double p, const at::Tensor& share,
                     const kernel::DropoutPart& part = {}) {
  const DropoutPlace place = next_place();
  return DropoutFunction::apply(x, p, place.seed_and_step.to(x.device()), place.calls,
                                share.defined() ? std::optional(share) : std::nullopt, part);
}

// What the kernel multiplies the elements by, for types that it does not support.
at::Tensor factors_of(const at::Tensor& x, double p, const at::Tensor& share) {
  const std::vector<int64_t> order = memory_order(x);
  const at::NoGradGuard no_grad;
  const at::Tensor ones = at::ones(x.permute(order).sizes(), x.options().dtype(at::kFloat));
  return by_kernel(ones, p, share).permute(places_in(order));
}

at::Tensor drop(const at::Tensor& x, double p, const at::Tensor& share) {
  if (kernel::StockOperatorsScope::is_there() && x.numel() > 0) {
    return x.mul(factors_of(x, p, share)).to(x.scalar_type());
  }
  if (kernel::kernels_enabled() && x.numel() > 0) {
    if (kernel::takes_dropout(x)) return by_kernel(x, p, share);
    // The CPU kernel does not support fp16; fp32 represents all fp16 values.
    if (x.is_cpu() && x.scalar_type() == at::kHalf) {
      return drop(x.to(at::kFloat), p, share).to(at::kHalf);
    }
    if (!x.is_contiguous()) {
      // Transposed tensors and images in channels_last are contiguous in another order.
      const std::vector<int64_t> order = memory_order(x);
      const at::Tensor dense = x.permute(order).contiguous();
      if (kernel::takes_dropout(dense)) return by_kernel(dense, p, share).permute(places_in(order));
    }
  }
  return share.defined() ? dropped(x, share) : at::dropout(x, p, true);
}

// By the kernel in any case, as LibTorch's operators draw as if there were nothing but the part.
at::Tensor drop_part(const at::Tensor& x, double p, const at::Tensor& share,
                     const kernel::DropoutPart& part) {
  if (x.numel() == 0) {
    next_place();  // As the processes with the other parts.
    return x;
  }
  const at::Tensor plain = x.contiguous();
  if (kernel::takes_dropout(plain)) return by_kernel(plain, p, share, part);
  const at::NoGradGuard no_grad;
  const at::Tensor ones = at::ones(x.sizes(), x.options().dtype(at::kFloat));
  const at::Tensor factors = by_kernel(ones, p, share, part);
  const at::AutoGradMode with_grad(x.requires_grad());
  return x.mul(factors).to(x.scalar_type());
}

}  // namespace

at::Tensor dropout(const at::Tensor& x, double p, bool training, const kernel::DropoutPart& part) {
  if (!training || p == 0) return x;
  if (p == 1 && !dropout_varies()) return x.mul(0);  // As LibTorch.
  if (!part.is_whole()) return drop_part(x, p, DropoutScope::place().share, part);
  return drop(x, p, DropoutScope::place().share);
}

at::Tensor fixed_dropout(const at::Tensor& x, double p) { return drop(x, p, {}); }

}  // namespace gallop::model::functional

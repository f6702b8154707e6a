#include "gallop/parallel/sums.h"

#include <algorithm>

#include <ATen/ops/zeros.h>

#include "gallop/base/error.h"
#include "gallop/kernel/barrier.h"
#include "gallop/kernel/operator.h"

namespace gallop::parallel {

namespace {

thread_local CollectivesScope* current_scope = nullptr;

CollectivesScope& needed() {
  if (current_scope == nullptr) throw InternalError("a sum over processes without any");
  return *current_scope;
}

}  // namespace

// The operators, which have no effect in a dry run.
struct SumOperators {
  static void start(const at::Tensor& tensor) {
    if (kernel::is_recorded()) return;
    CollectivesScope& scope = needed();
    scope.collectives_.all_reduce_async(tensor);
    scope.sums_.push_back({.tensor = tensor});
  }

  static void wait(const at::Tensor& tensor) {
    if (kernel::is_recorded()) return;
    CollectivesScope& scope = needed();
    scope.collectives_.wait(tensor);
    const auto found = std::find_if(scope.sums_.rbegin(), scope.sums_.rend(), [&](const auto& sum) {
      return !sum.is_there && sum.tensor.const_data_ptr() == tensor.const_data_ptr();
    });
    if (found == scope.sums_.rend()) return;
    found->is_there = true;
    found->tensor.reset();
  }

  static void require(const at::Tensor& sums, int64_t index) {
    if (kernel::is_recorded()) return;
    const at::Tensor numbers = sums.cpu();
    needed().collectives_.check();
    if (numbers.const_data_ptr<double>()[index] != 0) throw PeerFailed();
  }
};

CollectivesScope::CollectivesScope(Collectives& collectives)
    : collectives_(collectives), outer_(current_scope) {
  current_scope = this;
}

CollectivesScope::~CollectivesScope() { current_scope = outer_; }

Collectives* CollectivesScope::current() {
  return current_scope != nullptr ? &current_scope->collectives_ : nullptr;
}

void CollectivesScope::drain(const std::vector<at::Tensor>& sums) {
  for (Sum& sum : sums_) {
    if (!sum.is_there) collectives_.wait(sum.tensor);
  }
  sums_.clear();
  for (const at::Tensor& like : sums) {
    const at::Tensor nothing = at::zeros({like.numel()}, like.options().requires_grad(false));
    collectives_.all_reduce_async(nothing);
    collectives_.wait(nothing);
  }
}

void all_reduce_async(const at::Tensor& tensor) {
  static const kernel::Operator<void, const at::Tensor&> kStart(
      "all_reduce_async(Tensor(a!) tensor) -> ()", SumOperators::start, nullptr,
      SumOperators::start);
  kStart(tensor);
}

void wait_tensor(const at::Tensor& tensor) {
  static const kernel::Operator<void, const at::Tensor&> kWait(
      "wait_tensor(Tensor(a!) tensor) -> ()", SumOperators::wait, nullptr, SumOperators::wait);
  kWait(tensor);
}

void require_all_done(const at::Tensor& sums, int64_t index) {
  static const kernel::Operator<void, const at::Tensor&, int64_t> kRequire(
      "require_all_done(Tensor(a!) sums, int index) -> ()", SumOperators::require, nullptr,
      SumOperators::require);
  kRequire(sums, index);
}

}  // namespace gallop::parallel

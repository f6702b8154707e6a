#include "gallop/parallel/sums.h"

#include "gallop/base/error.h"
#include "gallop/kernel/barrier.h"
#include "gallop/kernel/operator.h"

namespace gallop::parallel {

namespace {

thread_local Collectives* current_collectives = nullptr;

Collectives& needed() {
  if (current_collectives == nullptr) throw InternalError("a sum over processes without any");
  return *current_collectives;
}

void on_start(const at::Tensor& tensor) {
  if (!kernel::is_recorded()) needed().start_sum(tensor);
}

void on_wait(const at::Tensor& tensor) {
  if (!kernel::is_recorded()) needed().wait(tensor);
}

}  // namespace

CollectivesScope::CollectivesScope(Collectives& collectives) : outer_(current_collectives) {
  current_collectives = &collectives;
}

CollectivesScope::~CollectivesScope() { current_collectives = outer_; }

Collectives* CollectivesScope::current() { return current_collectives; }

void start_sum(const at::Tensor& tensor) {
  static const kernel::Operator<void, const at::Tensor&> kStart(
      "start_sum(Tensor(a!) tensor) -> ()", on_start, nullptr, on_start);
  kStart(tensor);
}

void wait_for_sum(const at::Tensor& tensor) {
  static const kernel::Operator<void, const at::Tensor&> kWait(
      "wait_for_sum(Tensor(a!) tensor) -> ()", on_wait, nullptr, on_wait);
  kWait(tensor);
}

}  // namespace gallop::parallel

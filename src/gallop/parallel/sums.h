#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/parallel/collectives.h"

// Sums over processes as operators of LibTorch's dispatcher, where the step compiler sees them:
// "gallop::start_sum" and "gallop::wait_for_sum". While a step is recorded on trial they do
// nothing, as other processes may have no trial at that time.
namespace gallop::parallel {

/// While it lives, the operators on this thread mean these collectives.
class CollectivesScope {
 public:
  explicit CollectivesScope(Collectives& collectives);
  ~CollectivesScope();
  CollectivesScope(const CollectivesScope&) = delete;
  CollectivesScope& operator=(const CollectivesScope&) = delete;

  /// Of this thread; null outside of any scope.
  static Collectives* current();

 private:
  Collectives* outer_;
};

/// As Collectives::start_sum(). Throws InternalError outside of any scope.
void start_sum(const at::Tensor& tensor);
/// As Collectives::wait().
void wait_for_sum(const at::Tensor& tensor);

}  // namespace gallop::parallel

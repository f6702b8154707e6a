#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/parallel/collectives.h"

// Sums over processes as operators of LibTorch's dispatcher, where the step compiler sees them:
// "gallop::all_reduce_async", "gallop::wait_tensor" and "gallop::require_all_done". While a step is
// recorded in a dry run they do nothing, as other processes may have none at that time.
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

  /// Sums that were started by the operators.
  int64_t started() const { return static_cast<int64_t>(sums_.size()); }
  /// Where this process cannot go on: waits for what it has started, and takes part in sums of as
  /// many numbers as these tensors have, from the first, as the others do, with zeros.
  void drain(const std::vector<at::Tensor>& sums);

 private:
  friend struct SumOperators;

  struct Sum {
    at::Tensor tensor;
    bool is_there = false;
  };

  Collectives& collectives_;
  CollectivesScope* outer_;
  std::vector<Sum> sums_;
};

/// A process could not do its part of what was summed, which is discarded.
class PeerFailed : public std::exception {
 public:
  const char* what() const noexcept override { return "a process could not do its part"; }
};

/// As Collectives::all_reduce_async(). Throws InternalError outside of any scope.
void all_reduce_async(const at::Tensor& tensor);
/// As Collectives::wait().
void wait_tensor(const at::Tensor& tensor);
/// Throws PeerFailed where number `index` of the sums, [n] in fp64, is not 0. What is made of
/// these comes after.
void require_all_done(const at::Tensor& sums, int64_t index);

}  // namespace gallop::parallel

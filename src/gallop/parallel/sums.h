#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/parallel/collectives.h"

// All-reduces as operators of LibTorch's dispatcher, which the step compiler can record:
// "gallop::all_reduce_async", "gallop::wait_tensor" and "gallop::require_all_done". In a dry run
// they do nothing, as other processes may not make the same calls then.
namespace gallop::parallel {

/// While it lives, the operators on this thread use these collectives.
class CollectivesScope {
 public:
  explicit CollectivesScope(Collectives& collectives);
  ~CollectivesScope();
  CollectivesScope(const CollectivesScope&) = delete;
  CollectivesScope& operator=(const CollectivesScope&) = delete;

  /// The collectives of this thread; null outside of any scope.
  static Collectives* current();

  /// The number of all-reduces that the operators have started.
  int64_t started() const { return static_cast<int64_t>(sums_.size()); }
  /// Completes the collectives of a step in which this process fails: waits for those that it has
  /// started, and takes part in the remaining ones of `sums`, which have the same sizes in all
  /// processes, with zeros.
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

/// Thrown if a process failed in a step, whose sums are therefore discarded.
class PeerFailed : public std::exception {
 public:
  const char* what() const noexcept override { return "a process could not do its part"; }
};

/// As Collectives::all_reduce_async(). Throws InternalError outside of any scope.
void all_reduce_async(const at::Tensor& tensor);
/// As Collectives::wait().
void wait_tensor(const at::Tensor& tensor);
/// Throws PeerFailed if element `index` of the sums, [n] in fp64, is not 0. Must precede any use of
/// the sums.
void require_all_done(const at::Tensor& sums, int64_t index);

}  // namespace gallop::parallel

#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/parallel/collectives.h"

// Collectives as operators of LibTorch's dispatcher, which the step compiler can record:
// "gallop::all_reduce_async", "gallop::all_to_all_async", "gallop::all_gather_async",
// "gallop::send_async", "gallop::recv_async", "gallop::wait_tensor", "gallop::require_all_done" and
// "gallop::release_pages".
// In a dry run they do nothing, as other processes may not make the same calls then.
namespace gallop::parallel {

/// A collective of a step, in which a process that fails in the step takes part.
struct PendingCollective {
  enum class Kind : uint8_t { kAllReduce, kAllToAll, kAllGather };
  Kind kind = Kind::kAllReduce;
  at::Tensor tensor{};                     ///< Of an all-to-all: the input.
  std::vector<int64_t> receive{}, send{};  ///< Of an all-gather: `receive` are its sizes.
};

/// All-reduces of these tensors.
std::vector<PendingCollective> all_reduces_of(const std::vector<at::Tensor>& tensors);

/// While it lives, the operators on this thread use these collectives; see also SubgroupScope.
class CollectivesScope {
 public:
  explicit CollectivesScope(Collectives& collectives);
  ~CollectivesScope();
  CollectivesScope(const CollectivesScope&) = delete;
  CollectivesScope& operator=(const CollectivesScope&) = delete;

  /// The collectives of this thread; null outside of any scope.
  static Collectives* current();

  /// The number of collectives that the operators have started.
  int64_t started() const { return static_cast<int64_t>(calls_.size()); }
  /// Completes the collectives of a step in which this process fails: waits for those that it has
  /// started, and takes part in the remaining ones, with zeros.
  void drain(const std::vector<PendingCollective>& remaining);

 private:
  friend struct CollectiveOperators;
  friend class SubgroupScope;

  struct Call {
    at::Tensor tensor;
    Collectives* group = nullptr;
    bool is_done = false;
  };

  Collectives* all_;
  Collectives* group_;  // Which operators start collectives in: all, or a subgroup.
  CollectivesScope* outer_;
  std::vector<Call> calls_;
};

/// While it lives, the operators of the scope around it, if there is one, start their collectives
/// in a subgroup. They are waited for in the group in which they were started. Throws InternalError
/// if the group is neither that of the scope nor one of its subgroups.
class SubgroupScope {
 public:
  explicit SubgroupScope(Collectives& group);
  ~SubgroupScope();
  SubgroupScope(const SubgroupScope&) = delete;
  SubgroupScope& operator=(const SubgroupScope&) = delete;

 private:
  CollectivesScope* scope_;
  Collectives* before_ = nullptr;
};

/// Thrown if a process failed in a step, whose sums are therefore discarded.
class PeerFailed : public std::exception {
 public:
  const char* what() const noexcept override { return "a process could not do its part"; }
};

/// As Collectives::all_reduce_async(). Throws InternalError outside of any scope.
void all_reduce_async(const at::Tensor& tensor);
/// As the functions of Collectives of these names.
void all_to_all_async(const at::Tensor& output, const at::Tensor& input, c10::IntArrayRef receive,
                      c10::IntArrayRef send);
void all_gather_async(const at::Tensor& tensor, c10::IntArrayRef sizes);
/// As above, but not before `after` has been computed, if it is defined: a compiled step would
/// otherwise start it as soon as the tensor is not used.
void all_gather_async(const at::Tensor& tensor, c10::IntArrayRef sizes, const at::Tensor& after);
void send_async(const at::Tensor& tensor, int to);
void recv_async(const at::Tensor& tensor, int from);
/// Returns the memory of a tensor of pages (tensor/page_tensor.h) to the system, except for
/// elements [begin, end): what the others contain is undefined until it is written.
void release_pages(const at::Tensor& tensor, int64_t begin, int64_t end);
/// As Collectives::wait(), of the group in which the collective was started.
void wait_tensor(const at::Tensor& tensor);
/// Throws PeerFailed if element `index` of the sums, [n] in fp64, is not 0. Must precede any use of
/// the sums.
void require_all_done(const at::Tensor& sums, int64_t index);

}  // namespace gallop::parallel

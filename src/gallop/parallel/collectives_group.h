#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gallop/parallel/collectives.h"
#include "gallop/tensor/tensor_group.h"

namespace gallop::parallel {

/// All processes of `collectives`, which must outlive it, as layers and losses see them. Calls are
/// part of the current CollectivesScope, if there is one.
class CollectivesGroup final : public TensorGroup {
 public:
  explicit CollectivesGroup(Collectives& collectives, bool sequence_parallel = false,
                            std::vector<std::string> tp_plan = {})
      : collectives_(collectives),
        sequence_parallel_(sequence_parallel),
        tp_plan_(std::move(tp_plan)) {}

  int rank() const override { return collectives_.rank(); }
  int size() const override { return collectives_.size(); }
  bool sequence_parallel() const override { return sequence_parallel_; }
  const std::vector<std::string>& tp_plan() const override { return tp_plan_; }

  void all_reduce(const at::Tensor& tensor) const override;
  void all_gather(const at::Tensor& tensor, c10::IntArrayRef sizes) const override;
  void all_to_all(const at::Tensor& output, const at::Tensor& input, c10::IntArrayRef receive,
                  c10::IntArrayRef send) const override;
  void shift_async(const at::Tensor& output, const at::Tensor& input) const override;
  void wait_shift(const at::Tensor& output, const at::Tensor& input) const override;

 private:
  Collectives& collectives_;
  bool sequence_parallel_;
  std::vector<std::string> tp_plan_;
};

}  // namespace gallop::parallel

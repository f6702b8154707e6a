#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/logical_tensor.h"

namespace gallop {

/// The processes that divide the layers of a model and compute each forward pass together, as the
/// model sees them. All processes call the functions in the same order, and with sizes that agree.
class TensorGroup {
 public:
  virtual ~TensorGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Whether a process has only its tokens between the layers that are divided.
  virtual bool sequence_parallel() const = 0;
  /// Entries of "PATTERN=STYLE" for the layers of exported programs, such as
  /// "layers.*.fc1=colwise"; empty: the model chooses.
  virtual const std::vector<std::string>& tp_plan() const = 0;

  /// The functions of parallel::Collectives of these names, complete when they return.
  virtual void all_reduce(const at::Tensor& tensor) const = 0;
  virtual void all_gather(const at::Tensor& tensor, c10::IntArrayRef sizes) const = 0;
  virtual void all_to_all(const at::Tensor& output, const at::Tensor& input,
                          c10::IntArrayRef receive, c10::IntArrayRef send) const = 0;

  /// Starts to send `input` to the next rank of a ring, and to receive `output` from the previous
  /// one. Both are contiguous; neither may be written, nor `output` be read, until wait_shift(),
  /// which is called with the same tensors.
  virtual void shift_async(const at::Tensor& output, const at::Tensor& input) const = 0;
  virtual void wait_shift(const at::Tensor& output, const at::Tensor& input) const = 0;
};

/// How attention reaches the tokens of other processes, where each has a part of every sequence.
enum class ContextMethod : uint8_t {
  kUlysses,  ///< All-to-alls exchange tokens for heads (Jacobs et al., "DeepSpeed Ulysses", 2023).
  kRing,     ///< Keys and values pass from process to process (Liu et al., "Ring Attention", 2023).
};

/// The parameters of a model whose layers are divided among processes.
struct ParallelizedModel {
  std::vector<LogicalTensor> divided{};  ///< The parameters that are divided.
  /// Whole parameters whose gradients are sums over the tokens of this process alone.
  std::vector<std::string> partial_gradients{};
};

}  // namespace gallop

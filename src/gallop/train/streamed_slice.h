#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "gallop/parallel/collectives.h"
#include "gallop/tensor/logical_tensor.h"
#include "gallop/tensor/safetensors_writer.h"
#include "gallop/train/checkpoint.h"
#include "gallop/train/slice_files.h"

namespace gallop::train {

/// The state of a training that is divided among processes.
struct DividedState {
  std::vector<LogicalTensor> model, optimizer;
  NamedTensors own{};  ///< TrainingState::own.
};

/// A slice of a checkpoint, written tensor by tensor.
class StreamedSlice {
 public:
  StreamedSlice(CheckpointDraft draft, int slice) : draft_(std::move(draft)), slice_(slice) {}

  /// Begins a file with tensors of these names, sizes and types.
  void begin(SliceKind kind, const NamedTensors& tensors);
  /// Writes the next one of safetensors_order(). After an error, nothing is written any more.
  void append(const at::Tensor& tensor);
  /// Syncs the files. Throws the first error.
  WrittenFiles finish();

 private:
  void attempt(const std::function<void()>& function);

  CheckpointDraft draft_;
  int slice_;
  std::vector<std::pair<fs::path, SafetensorsWriter>> files_;
  std::exception_ptr failure_;
};

/// Gathers a state tensor by tensor; each process writes the tensors of its slice. All processes
/// must call it. A process holds at most one gathered tensor at any time. Returns null in a process
/// without a slice.
std::shared_ptr<StreamedSlice> write_slices(parallel::Collectives& collectives,
                                            const CheckpointDraft& draft,
                                            const DividedState& state);

}  // namespace gallop::train

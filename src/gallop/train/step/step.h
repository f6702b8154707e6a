#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gallop/compile/graph_listing.h"
#include "gallop/compile/graph_stages.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/train/async_results.h"
#include "gallop/train/loss.h"
#include "gallop/train/step/config.h"
#include "gallop/train/step/function.h"
#include "gallop/train/step/runner.h"
#include "gallop/train/step/sharing.h"
#include "gallop/train/step/tensors.h"

namespace gallop::train {

using StepRequests = std::array<bool, kStepRequests>;

/// The inputs of a step shared by several processes, other than this process's slice of the batch.
struct SharedBatch {
  /// Rows of the whole batch, including broken samples; 0 if this process has all of them.
  int64_t rows = 0;
  /// Rows of this process's slice, if its tensors have another number, as packed ones have.
  std::optional<int64_t> own_rows{};
  StepRequests requests{};
};

/// The results of one update.
struct StepResult {
  /// The count is the number of targets that are not ignored, and the loss sum that count times the
  /// mean loss of the batch. Correct predictions are counted only if requested.
  Tally tally;
  bool has_class_labels = true;  ///< Whether targets are class labels, so that accuracy is defined.
  double gradient_norm = 0;
  bool is_spike = false;    ///< The loss is a spike: the update was skipped.
  StepRequests requests{};  ///< Requests of any of the processes that share the step.
  double share = 1;         ///< Fraction of the targets whose samples are not broken, if shared.
  bool finite = true;       ///< Whether the loss and all gradients are finite.
  std::string
      non_finite_tensor;  ///< The first that is not finite, "loss" or a parameter's name; empty if
                          ///< there is none, or if asynchronous results do not tell which.
};

/// One training step. StepFunction computes it, eagerly or compiled, and StepRunner within the
/// memory of the device. On a GPU, results may be taken later, so that the host continues without
/// waiting.
///
/// If a micro-batch does not fit in memory, micro-batches are split in two from then on, and the
/// step is repeated: gradients are the same, as with StepConfig::gradient_accumulation, and batch
/// norm takes the statistics of the smaller micro-batches. Throws StepDoesNotFit if a single sample
/// does not fit. If processes share the step and one runs out of memory, all of them split and
/// repeat it, and its all-reduced sums are discarded.
class TrainStep {
 public:
  /// Model, optimizer and teacher must outlive the step. Throws UsageError like check_optimizer()
  /// and check_step().
  TrainStep(model::Model& model, optim::Optimizer& optimizer, const StepConfig& config);
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  /// `batch`: the fields that the model and the loss read, one row per sample, with the model's
  /// input first; the names are the same in every step. `shared` is used only if processes share
  /// the step; the batch may then be empty. `step` counts updates from 0; with the seed it
  /// determines dropout. An update with a non-finite loss is skipped; one with non-finite gradients
  /// is skipped with StepConfig::skip_nonfinite, clipping or fp16.
  StepResult run(const NamedTensors& batch, int64_t step, double lr, bool count_correct,
                 const std::vector<double>& values = {}, const SharedBatch& shared = {});

  /// run() in two parts: several steps may be started before the first result is taken. Throws
  /// InternalError if is_full().
  void start(const NamedTensors& batch, int64_t step, double lr, bool count_correct,
             const std::vector<double>& values = {}, const SharedBatch& shared = {});
  /// Waits for the oldest started step and returns its result. Throws InternalError without one.
  StepResult take();
  /// Whether take() would not wait.
  bool can_take() const;
  /// Whether the maximum number of results is in flight.
  bool is_full() const;

  /// The number of micro-batches into which each micro-batch has been split to save memory; 1
  /// initially. Restored at a resume.
  int64_t splits() const { return function_.micro_batches().splits(); }
  void set_splits(int64_t splits) { runner_.set_splits(splits); }
  /// The allocator's message at the last split.
  const std::string& why_split() const { return runner_.why_split(); }

  /// The maximum number of steps by which the results taken lag behind the next start().
  int64_t max_in_flight() const { return results_ ? results_->max_in_flight() - 1 : 0; }

  /// The state for checkpoints: the loss scale with fp16, and the mean, variance and count of
  /// losses if spikes are detected.
  NamedTensors state() const { return function_.update().state(); }
  /// Whether updates with non-finite gradients are skipped and the run continues.
  bool skips_nonfinite() const {
    return config_.skip_nonfinite || config_.precision == precision::Precision::kFp16;
  }

  /// LossTraits::infinite_because of the loss.
  const char* infinite_because() const;

  /// The graphs of an update without counting correct predictions; `stage` is StagesConfig::only.
  /// Updates nothing, and does not depend on whether the step is compiled.
  compile::GraphStages graphs(const NamedTensors& batch, const std::string& stage,
                              const compile::TimingConfig& timing = {});

  /// The compiled graphs of the steps so far, by Graph::number, without times.
  std::map<int64_t, compile::GraphListing> compiled_graphs() const;

  /// The state of compilation; null if it is disabled.
  const compile::CompileReport* compile_report() const;

 private:
  struct Started {
    StepResult result;  // As far as it is known.
    bool is_read = false;
    int64_t size = 0;  // What processes have shares of: targets, or rows if these are counted.
  };

  void set_names(const NamedTensors& batch);
  Started set_inputs(const NamedTensors& batch, int64_t step, double lr,
                     const std::vector<double>& values, const SharedBatch& shared);
  void set_shared_inputs(const NamedTensors& batch, int64_t step, int64_t size,
                         const SharedBatch& shared);
  void set_loss_weight(int64_t targets);
  int64_t size_of(const NamedTensors& batch, int64_t rows) const;
  StepInputs inputs_of(const NamedTensors& batch) const;
  void read(Started& started, const StepNumbers& numbers) const;
  std::string first_non_finite(const StepInputs& inputs, int64_t step, double loss_sum);
  compile::GraphNames graph_names() const;

  StepConfig config_;
  StepSharing sharing_;
  StepFunction function_;
  StepInputs inputs_;  ///< The batch has names only, which are empty before the first step.
  std::unique_ptr<AsyncResults> results_;  ///< Null if results are available when a step returns.
  StepRunner runner_;
  std::deque<Started> started_;
};

}  // namespace gallop::train

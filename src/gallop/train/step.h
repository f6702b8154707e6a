#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/compile/graph_listing.h"
#include "gallop/compile/graph_stages.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/optim/updated_parameters.h"
#include "gallop/parallel/strategy.h"
#include "gallop/parallel/sums.h"
#include "gallop/precision/grad_scaler.h"
#include "gallop/precision/precision.h"
#include "gallop/tensor/tensor_group.h"
#include "gallop/train/async_results.h"
#include "gallop/train/distillation.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/spike_watch.h"
#include "gallop/train/tensor_snapshot.h"

namespace gallop::train {

class PipelineStep;

/// Parameters other than the learning rate that may change from step to step.
enum class ScheduledParameter { kLabelSmoothing, kMomentum, kBeta2, kWeightDecay, kDropout };

/// "label_smoothing"
const char* name_of(ScheduledParameter value);

struct StepConfig {
  precision::Precision precision = precision::Precision::kFp32;
  precision::GradScalerConfig loss_scale{};  ///< For fp16.
  int64_t gradient_accumulation = 1;         ///< Micro-batches per batch.
  std::optional<double> clip_grad_norm;      ///< Maximum global norm of the gradients.
  std::optional<double> clip_value{};        ///< See optim::clip_values().
  std::optional<double> clip_adaptive{};     ///< See optim::clip_adaptively().
  /// If set, gradients are those at this distance from the weights, in the direction in which the
  /// loss rises fastest (Foret et al., "Sharpness-aware minimization for efficiently improving
  /// generalization", ICLR 2021). Each step is computed twice; only the first pass changes buffers.
  std::optional<double> sam{};
  std::shared_ptr<const Loss> loss = cross_entropy_loss();  ///< The loss to minimize; never null.
  /// Whether no target is ever ignored (data::Samples::every_target_counts()). The count of a loss
  /// that depends on nothing else then follows from sizes, and is not computed.
  bool every_target_counts = false;
  /// Whether batches have a field "weight", which multiplies losses and counts of targets.
  bool has_weights = false;
  std::optional<Distillation> distill{};
  std::optional<SpikeConfig> spikes{};  ///< If set, an update at a spike is skipped.
  /// Parameters whose values are passed to each start(), in this order, as inputs of a compiled
  /// step. They replace the values of this config, of the optimizer's options and of the model. The
  /// optimizer must support them, and kDropout requires a model with dropout.
  std::vector<ScheduledParameter> scheduled{};
  uint64_t seed = 1;  ///< Seed of dropout.
  /// Whether to skip the update if a gradient is not finite, at the cost of one more pass over the
  /// gradients. Otherwise the update is applied, and StepResult::finite reports it afterwards, so
  /// that the caller can stop.
  bool skip_nonfinite = false;
  /// If set, the step is traced and the compiled graph is run; see compile::CompiledFunction.
  std::optional<compile::CompileConfig> compile{};
  /// If set, processes share each step: each passes its slice of the batch, gradients are those of
  /// the whole batch, and results are the same in all processes.
  parallel::Strategy* strategy = nullptr;
  /// How results are copied to the host.
  MakeAsyncResults make_results = make_async_results;
};

/// What a process may request of all processes after a step.
enum class StepRequest : size_t { kStop, kEvaluate, kSave };
constexpr size_t kStepRequests = 3;
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

struct StepInputs;
struct StepOutputs;

/// One training step: forward, loss, backward, clip, update. Gradients of k micro-batches equal
/// those of one batch, as every sum is divided by the count of the whole batch over all processes,
/// excluding ignored targets and including weights of targets. The step is a function of tensors
/// that reads nothing on the host. On a GPU, results may be taken later, so that the host continues
/// without waiting.
///
/// If a micro-batch does not fit in memory, micro-batches are split in two from then on, and the
/// step is repeated: gradients are the same, as with StepConfig::gradient_accumulation, and batch
/// norm takes the statistics of the smaller micro-batches. Throws StepDoesNotFit if a single sample
/// does not fit. If processes share the step and one runs out of memory, all of them split and
/// repeat it, and its all-reduced sums are discarded.
class TrainStep {
 public:
  /// Model, optimizer and teacher must outlive the step. Throws UsageError like check_optimizer().
  TrainStep(model::Model& model, optim::Optimizer& optimizer, const StepConfig& config);
  ~TrainStep();
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  /// `batch`: "input" and "target", then further fields that the model or the loss reads, one row
  /// per sample; the names are the same in every step. `shared` is used only if processes share the
  /// step; the batch may then be empty. `step` counts updates from 0; with the seed it determines
  /// dropout. An update with a non-finite loss is skipped; one with non-finite gradients is skipped
  /// with StepConfig::skip_nonfinite, clipping or fp16.
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
  int64_t splits() const { return splits_; }
  void set_splits(int64_t splits);
  /// The allocator's message at the last split.
  const std::string& why_split() const { return why_split_; }

  /// The maximum number of steps by which the results taken lag behind the next start().
  int64_t max_in_flight() const { return results_ ? results_->max_in_flight() - 1 : 0; }

  /// The state for checkpoints: the loss scale with fp16, and the mean, variance and count of
  /// losses if spikes are detected.
  NamedTensors state() const;
  /// Whether updates with non-finite gradients are skipped and the run continues.
  bool skips_nonfinite() const { return config_.skip_nonfinite || scaler_; }

  /// The graphs of an update without counting correct predictions; `stage` is StagesConfig::only.
  /// Updates nothing, and does not depend on whether the step is compiled.
  compile::GraphStages graphs(const NamedTensors& batch, const std::string& stage,
                              const compile::TimingConfig& timing = {});

  /// The compiled graphs of the steps so far, by Graph::number, without times.
  std::map<int64_t, compile::GraphListing> compiled_graphs() const;

  /// The state of compilation; null if it is disabled.
  const compile::CompileReport* compile_report() const;

 private:
  void seed_generator(int64_t step) const;
  using Tensors = std::vector<at::Tensor>;
  struct Started {
    StepResult result;  // As far as it is known.
    bool is_read = false;
    int64_t targets = 0;  // Targets of the whole batch, including broken samples.
    int64_t size = 0;     // What processes have shares of: targets, or rows if these are counted.
  };
  bool has_class_labels(const at::Tensor& target) const;
  int64_t most_numbers() const;

  void read_now(Started& started, const StepOutputs& outputs, const StepInputs& inputs,
                int64_t step);
  void read_late(Started& started);
  Tensors compute_in_memory(const StepInputs& inputs, bool count_correct, int64_t step);
  struct Shortage {
    std::string why;
    bool of_one_sample = false;  ///< Micro-batches cannot be split further.
  };
  std::unique_ptr<parallel::CollectivesScope> sharing() const;
  Shortage share_shortage(parallel::CollectivesScope& scope, const std::optional<std::string>& own,
                          bool is_one_sample, int64_t step);
  std::vector<parallel::PendingCollective> calls_left(const parallel::CollectivesScope& scope,
                                                      const std::string& why, int64_t step) const;
  void require_unchanged(const std::string& why, int64_t step) const;
  void split_for(const Shortage& shortage, int64_t step);
  Tensors compute(const StepInputs& inputs, bool count_correct);
  /// Sums over the batch; `shared` is as in SharedSum, and undefined without a process group.
  struct Sums {
    at::Tensor loss, top1, shared;
    at::Tensor statistics{};  ///< model::Output::step_statistics, of this process.
    Tensors of_slices{};      ///< Losses; undefined for those of other processes.
  };
  /// If counts do not follow from sizes: the fp64 factors of the sum of each term, the teacher's
  /// and that of the model's own loss last, and the number of targets of the whole batch that are
  /// not ignored.
  struct Counts {
    at::Tensor factors, targets;
  };
  Counts count_targets_of_all(const StepInputs& inputs);
  at::Tensor counts_of(const NamedTensors& batch) const;
  int64_t counts() const;
  Sums forward_backward(const StepInputs& inputs, const Counts& counts, bool count_correct);
  Sums forward_backward_in_pipeline(const StepInputs& inputs, const Counts& counts,
                                    bool count_correct);
  bool plan_pipeline(const NamedTensors& batch);
  std::vector<NamedTensors> micro_batches_of(const NamedTensors& batch) const;
  std::function<void(const std::function<void()>& pass)> in_format() const;
  Sums forward_backward_sam(const StepInputs& inputs, const Counts& counts, const Sums& first,
                            double distance);
  model::Output forward(const NamedTensors& batch);
  Losses losses_of(const NamedTensors& batch, const StepInputs& inputs, const Counts& counts,
                   bool count_correct);
  Losses losses_of(model::Output output, const NamedTensors& batch, const StepInputs& inputs,
                   const Counts& counts, bool count_correct);
  at::Tensor auxiliary_of(const model::Output& output, const NamedTensors& batch,
                          const Counts& counts) const;
  void update_statistics(const Sums& sums);
  at::Tensor teach(const model::Output& output, const NamedTensors& batch) const;
  void backward(const at::Tensor& loss_sum, const StepInputs& inputs);
  void begin_gradient_sync(bool is_first, bool is_last);
  /// The rows of a micro-batch.
  struct Piece {
    int64_t begin = 0, end = 0;
    int64_t slice = 0;
  };
  std::vector<Piece> pieces_of(int64_t rows) const;
  int64_t batch_slices() const;
  /// Whether several processes together compute one part of a batch.
  bool divides_model() const;
  /// The index of the part of a batch that this process computes.
  int batch_part() const;
  /// Whether the losses of this part are counted in this process.
  bool counts_here() const;
  bool shares_batch_norm() const;
  /// Whether this process takes part in the passes of others without samples.
  bool computes_empty_pieces() const;
  bool sums_each_micro_batch() const;
  /// Micro-batches of a batch with enough rows.
  int64_t micro_batches() const { return config_.gradient_accumulation * splits_; }
  int64_t mode_of(bool count_correct) const;
  void finish_sharing(Sums& sums, const StepInputs& inputs);
  /// What synchronizes replicas, if this step's gradients are those of this process alone;
  /// otherwise null.
  const parallel::ModelAverager* local_replicas() const;
  at::Tensor draws_of_dropout(const StepInputs& inputs, int64_t slice) const;
  StepInputs inputs_of(const NamedTensors& batch) const;
  /// The value of a scheduled parameter; undefined if it is not scheduled.
  at::Tensor scheduled(ScheduledParameter value, const StepInputs& inputs) const;
  /// The gradient norm, and the spike flag if spikes are detected. `share`: the fraction of the
  /// batch that is not broken; undefined for 1. Nothing is updated if `idle` is not 0.
  struct Updated {
    at::Tensor gradient_norm, spike;
  };
  Updated update(const StepInputs& inputs, const at::Tensor& loss_sum, const at::Tensor& share,
                 const at::Tensor& idle);
  at::Tensor apply(const StepInputs& inputs, at::Tensor found_inf, const at::Tensor& share);
  std::string first_non_finite(const StepInputs& inputs, int64_t step, double loss_sum);
  NamedTensors everything() const;
  /// What the optimizer updates.
  const optim::UpdatedParameters& updated() const;
  bool keeps_gradients_of_parts() const;

  void set_names(const NamedTensors& batch);
  compile::GraphNames graph_names() const;

  model::Model& model_;
  optim::Optimizer& optimizer_;
  NamedTensors batch_names_;  // Names of the fields, without tensors; empty before the first batch.
  NamedTensors parameters_;
  optim::WholeParameters whole_;
  StepConfig config_;
  std::vector<LossTerm> terms_;
  bool counts_on_device_;  ///< Counts depend on the values of targets, or there are several terms.
  at::Device device_;
  at::Tensor lr_, loss_weight_;
  Tensors scheduled_;         ///< In the order of StepConfig::scheduled.
  at::Tensor seed_and_step_;  ///< Seed and step of dropout, int64 [2].
  at::Tensor shared_;         ///< This process's summands of SharedSum; undefined without a group.
  /// Seed and step of dropout in this process, int64 [batch slices or 1, 2]; differs among them.
  at::Tensor own_seed_and_step_;
  /// The processes whose samples the loss compares; null if it compares none.
  std::unique_ptr<TensorGroup> rows_group_;
  int64_t whole_rows_ = 0;  ///< Rows of the whole batch.
  std::optional<precision::GradScaler> scaler_;
  std::optional<SpikeWatch> spikes_;
  std::unique_ptr<PipelineStep> pipeline_;  ///< Null if this process computes the whole model.
  std::optional<compile::CompiledFunction> compiled_;
  std::unique_ptr<AsyncResults> results_;  ///< Null if results are available when a step returns.
  std::deque<Started> started_;
  TensorSnapshot kept_;  ///< What a step changes before its update, to restore it.
  int64_t splits_ = 1;
  std::string why_split_;
  bool updating_ = false;  ///< Whether parameters may have changed in this step.
};

/// Throws UsageError if the optimizer does not support the config: SAM computes gradients at other
/// weights, and so needs an optimizer whose average does not depend on gradients at its own
/// weights, and weights that are not bf16.
void check_optimizer(const StepConfig& config, const optim::Optimizer& optimizer);

/// Throws UsageError if a pipeline does not support the config.
void check_in_pipeline(const StepConfig& config);

/// Throws UsageError if replicas that are trained separately do not support the config.
void check_in_replicas(const StepConfig& config, const optim::Optimizer& optimizer);

/// Throws UsageError if processes that divide layers do not support the config.
void check_in_tensor(const StepConfig& config);
/// Throws UsageError if processes that divide the experts do not support the config.
void check_in_expert(const StepConfig& config);

/// Throws UsageError if the config needs gradients of whole parameters, which are divided among
/// processes by `option`, such as "parallel.name=zero-1".
void check_division(const StepConfig& config, const std::string& option);

/// Seeds LibTorch's generator for step `step`, from which operators such as dropout on a GPU draw,
/// so that a resumed run draws the same numbers, and each process its own.
void seed_step(uint64_t seed, int64_t step, at::Device device, int64_t rank = 0);

}  // namespace gallop::train

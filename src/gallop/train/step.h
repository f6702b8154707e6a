#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/compile/graph_stages.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/parallel/strategy.h"
#include "gallop/parallel/sums.h"
#include "gallop/precision/grad_scaler.h"
#include "gallop/precision/precision.h"
#include "gallop/train/async_results.h"
#include "gallop/train/distillation.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/spike_watch.h"
#include "gallop/train/tensor_snapshot.h"

namespace gallop::train {

/// What may change from step to step besides the learning rate.
enum class ScheduledParameter { kLabelSmoothing, kMomentum, kBeta2, kWeightDecay, kDropout };

/// "label_smoothing"
const char* name_of(ScheduledParameter value);

struct StepConfig {
  precision::Precision precision = precision::Precision::kFp32;
  precision::GradScalerConfig loss_scale{};  ///< Of fp16.
  int64_t gradient_accumulation = 1;         ///< Micro-batches a batch is cut into.
  std::optional<double> clip_grad_norm;      ///< Largest global norm of the gradients.
  std::optional<double> clip_value{};        ///< See optim::clip_values().
  std::optional<double> clip_adaptive{};     ///< See optim::clip_adaptively().
  /// If set, the update takes the gradients of weights that lie so far from the model's, where the
  /// loss rises fastest (Foret et al., "Sharpness-aware minimization for efficiently improving
  /// generalization", ICLR 2021). Each step is computed twice; buffers see the first time alone.
  std::optional<double> sam{};
  std::shared_ptr<const Loss> loss = cross_entropy_loss();  ///< What is minimized; never null.
  /// No target is ever ignored (data::Samples::every_target_counts()): the count of a loss that
  /// depends on nothing else then follows from sizes, and is not computed.
  bool every_target_counts = false;
  /// Batches have a field "weight", which losses multiply and count targets by.
  bool has_weights = false;
  std::optional<Distillation> distill{};
  std::optional<SpikeConfig> spikes{};  ///< If set, an update at a spike is skipped.
  /// Values that every start() is given again, in this order: inputs of the step, so that a
  /// compiled one stays as it is. Of those, what stands above, in the optimizer's options or in the
  /// model's does not count. The optimizer can vary them, and the model has dropout.
  std::vector<ScheduledParameter> scheduled{};
  uint64_t seed = 1;  ///< Of dropout.
  /// A gradient that is not finite leaves the parameters as they are, which takes one more pass
  /// over the gradients, before the update. Else it is told after the update, for those who then
  /// stop.
  bool skip_nonfinite = false;
  /// If set, the step is recorded and what it does is run instead; see compile::CompiledFunction.
  std::optional<compile::CompileConfig> compile{};
  /// If set, processes share each step: every one gives its part of the batch, gradients are those
  /// of the whole, and results are the same in all.
  parallel::Strategy* strategy = nullptr;
  /// How results come to the host.
  MakeAsyncResults make_results = make_async_results;
};

/// What a process would have all of them do after a step.
enum class StepRequest : size_t { kStop, kEvaluate, kSave };
constexpr size_t kStepRequests = 3;
using StepRequests = std::array<bool, kStepRequests>;

/// The inputs of a step shared by several processes, besides this process's part of the batch.
struct SharedBatch {
  /// Of all parts together, broken samples included; 0 where this process has all of them.
  int64_t rows = 0;
  StepRequests requests{};
};

/// What one update did.
struct StepResult {
  /// The count is that of the targets that are not ignored, and the loss sum that count times the
  /// mean loss of the batch; right guesses only where they were asked for.
  Tally tally;
  bool has_guesses = true;  ///< Targets are class labels: right guesses have a meaning.
  double gradient_norm = 0;
  bool is_spike = false;    ///< The loss: the update was skipped.
  StepRequests requests{};  ///< Of any of the processes that share the step.
  double share = 1;         ///< Of the samples that were not broken, where it is shared.
  bool finite = true;       ///< The loss and all gradients.
  std::string bad_tensor;  ///< If not, the first of them: "loss" or a parameter's name; empty where
                           ///< results come late and tell no more than that a gradient is not.
};

struct StepInputs;
struct StepOutputs;

/// One training step: forward, loss, backward, clip, update. Gradients of k micro-batches equal
/// those of one batch, as every sum is divided by the true count of the whole batch, over all
/// processes, in which ignored targets and weights have their part.
/// All of it is a function of tensors that reads nothing on the host. On a GPU its results may be
/// taken later: the host goes on without waiting.
///
/// Where there is no memory for a micro-batch, micro-batches are split in two from then on, and the
/// step is computed again: gradients are the same, as with StepConfig::gradient_accumulation, and
/// batch norm takes its statistics of the smaller ones. Throws StepDoesNotFit where one sample is
/// too much. Of processes that share a step all do so where one has no memory: what was summed in
/// the step so far is discarded.
class TrainStep {
 public:
  /// Model, optimizer and teacher must outlive the step. Throws UsageError as check_optimizer().
  TrainStep(model::Model& model, optim::Optimizer& optimizer, const StepConfig& config);

  /// `batch`: "input" and "target", then further fields that the model or the loss reads, one row a
  /// sample; in every step the same names. `shared` counts where the step is shared; the batch may
  /// then have no rows. `step` counts updates from 0; it and the seed decide dropout. An update
  /// whose loss is not finite is not applied; gradients that are not, as the config says, and never
  /// with clipping or fp16, which know their norm before.
  StepResult run(const NamedTensors& batch, int64_t step, double lr, bool count_correct,
                 const std::vector<double>& values = {}, const SharedBatch& shared = {});

  /// The same in two: several may be started before the first result is taken, in their order.
  /// Throws InternalError where is_full().
  void start(const NamedTensors& batch, int64_t step, double lr, bool count_correct,
             const std::vector<double>& values = {}, const SharedBatch& shared = {});
  /// Of the oldest that was started; waits for it. Throws InternalError where there is none.
  StepResult take();
  /// Whether take() would not wait.
  bool can_take() const;
  /// Whether as many results are under way as may be.
  bool is_full() const;

  /// Into how many parts micro-batches have been split for want of memory; 1 at first, and again
  /// what it was after a resume.
  int64_t splits() const { return splits_; }
  void set_splits(int64_t splits);
  /// What the allocator said when they were split last.
  const std::string& why_split() const { return why_split_; }

  /// By how many steps at most the results that have been taken lie behind the next start().
  int64_t max_in_flight() const { return results_ ? results_->max_in_flight() - 1 : 0; }

  /// Loss scale, mean and deviation of losses and their counters, for checkpoints; of those what
  /// the config asks for.
  NamedTensors state() const;
  /// Whether updates that are not finite are left out and the run goes on.
  bool skips_nonfinite() const { return config_.skip_nonfinite || scaler_; }

  /// What an update that counts no guesses does, as graphs; `stage` is StagesConfig::only. Nothing
  /// is updated, and it does not matter whether the step is to be compiled.
  compile::GraphStages graphs(const NamedTensors& batch, const std::string& stage,
                              const compile::TimingConfig& timing = {});

  /// What compiling has come to; null where it is off.
  const compile::CompileReport* compile_report() const;

 private:
  using Tensors = std::vector<at::Tensor>;
  struct Started {
    StepResult result;  // What is known of it.
    bool is_read = false;
    int64_t targets = 0;  // Of the whole batch, broken samples included, where it is shared.
  };
  bool has_guesses(const at::Tensor& target) const;
  int64_t most_numbers() const;

  void read_now(Started& started, const StepOutputs& outputs, const StepInputs& inputs,
                int64_t step);
  void read_late(Started& started);
  Tensors compute_in_memory(const StepInputs& inputs, bool count_correct, int64_t step);
  struct Shortage {
    std::string why;
    bool of_one_sample = false;  ///< Nothing is left to be split.
  };
  std::unique_ptr<parallel::CollectivesScope> sharing() const;
  Shortage share_shortage(parallel::CollectivesScope& scope, const std::optional<std::string>& own,
                          bool is_one_sample, int64_t step);
  Tensors sums_left(const parallel::CollectivesScope& scope, const std::string& why,
                    int64_t step) const;
  void require_unchanged(const std::string& why, int64_t step) const;
  void split_for(const Shortage& shortage, int64_t step);
  Tensors compute(const StepInputs& inputs, bool count_correct);
  /// Of the batch; `shared` as SharedSum says, undefined where alone.
  struct Sums {
    at::Tensor loss, top1, shared;
    Tensors of_shards{};  ///< Losses; undefined where others have them.
  };
  /// Where counts do not follow from sizes: what the sum of each term is multiplied by, fp64, the
  /// teacher's last, and how many targets of the whole batch are not ignored.
  struct Counts {
    at::Tensor factors, targets;
  };
  Counts count_targets_of_all(const StepInputs& inputs);
  at::Tensor counts_of(const NamedTensors& batch) const;
  int64_t counts() const;
  Sums forward_backward(const StepInputs& inputs, const Counts& counts, bool count_correct);
  Sums forward_backward_sam(const StepInputs& inputs, const Counts& counts, const Sums& first,
                            double distance);
  Losses losses_of(const NamedTensors& batch, const StepInputs& inputs, const Counts& counts,
                   bool count_correct);
  at::Tensor teach(const model::Output& output, const NamedTensors& batch) const;
  void backward(const at::Tensor& loss_sum, const StepInputs& inputs);
  void begin_gradient_sync();
  /// Rows that are computed at once.
  struct Piece {
    int64_t begin = 0, end = 0;
    int64_t shard = 0;
  };
  std::vector<Piece> pieces_of(int64_t rows) const;
  int64_t shards() const;
  bool shares_batch_norm() const;
  int64_t mode_of(bool count_correct) const;
  void finish_sharing(Sums& sums, const StepInputs& inputs);
  at::Tensor draws_of_dropout(const StepInputs& inputs, int64_t shard) const;
  StepInputs inputs_of(const NamedTensors& batch) const;
  /// That of a value that varies, else undefined.
  at::Tensor scheduled(ScheduledParameter value, const StepInputs& inputs) const;
  /// The norm of the gradients, and where they are looked for whether the loss is a spike. `share`
  /// of the batch was not broken; undefined for all. Where `idle` is not 0 nothing is updated.
  struct Updated {
    at::Tensor gradient_norm, spike;
  };
  Updated update(const StepInputs& inputs, const at::Tensor& loss_sum, const at::Tensor& share,
                 const at::Tensor& idle);
  at::Tensor apply(const StepInputs& inputs, at::Tensor found_inf, const at::Tensor& share);
  std::string first_bad_tensor(const StepInputs& inputs, int64_t step, double loss_sum);
  std::string first_bad_parameter() const;
  NamedTensors everything() const;

  void set_names(const NamedTensors& batch);

  model::Model& model_;
  optim::Optimizer& optimizer_;
  NamedTensors batch_names_;  // Of every batch, without tensors; empty before the first.
  NamedTensors parameters_;
  StepConfig config_;
  std::vector<LossTerm> terms_;
  bool counts_on_device_;  ///< Counts depend on the values of targets, or on several terms.
  at::Device device_;
  at::Tensor lr_, loss_weight_;
  Tensors scheduled_;         ///< In the order of the config's.
  at::Tensor seed_and_step_;  ///< What dropout draws from, int64 [2].
  at::Tensor shared_;         ///< What this process adds to sums over all; undefined where alone.
  /// Then what its dropout draws from, int64 [shards or 1, 2]: other numbers than those of others.
  at::Tensor own_seed_and_step_;
  int64_t whole_rows_ = 0;  ///< Of the batch that is shared.
  std::optional<precision::GradScaler> scaler_;
  std::optional<SpikeWatch> spikes_;
  std::optional<compile::CompiledFunction> compiled_;
  std::unique_ptr<AsyncResults> results_;  ///< Null where results are there at once.
  std::deque<Started> started_;
  TensorSnapshot kept_;  ///< What a step changes before its update, as it was.
  int64_t splits_ = 1;
  std::string why_split_;
  bool updating_ = false;  ///< Parameters may have changed in this step.
};

/// Throws UsageError where a step cannot be done with such an optimizer: SAM, whose gradients are
/// of other weights, with one whose average goes by the gradients of its own; or with weights in
/// bf16.
void check_optimizer(const StepConfig& config, const optim::Optimizer& optimizer);

/// Starts the random numbers of step `step` that LibTorch's operators draw, such as dropout on a
/// GPU: a resumed run draws the same.
void seed_step(uint64_t seed, int64_t step, at::Device device);

}  // namespace gallop::train

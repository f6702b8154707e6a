#include "gallop/train/step.h"

#include <algorithm>
#include <cmath>

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/kernel/shared_cores.h"
#include "gallop/optim/gradients.h"
#include "gallop/parallel/collectives_group.h"
#include "gallop/parallel/model_averager.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/pipeline.h"
#include "gallop/tensor/recording.h"
#include "gallop/train/dropout_seed.h"
#include "gallop/train/pipeline_step.h"
#include "gallop/train/step_tensors.h"

namespace gallop::train {

namespace {

// Without an operator on the CPU: a step of a small network takes half a millisecond.
void set(const at::Tensor& scalar, double value) {
  if (scalar.device().is_cpu()) {
    if (scalar.scalar_type() == at::kDouble) {
      *scalar.mutable_data_ptr<double>() = value;
    } else {
      *scalar.mutable_data_ptr<float>() = static_cast<float>(value);
    }
  } else {
    scalar.fill_(value);
  }
}

void set(const at::Tensor& seed_and_step, uint64_t seed, int64_t step) {
  if (seed_and_step.device().is_cpu()) {
    auto* const numbers = seed_and_step.mutable_data_ptr<int64_t>();
    numbers[0] = static_cast<int64_t>(seed);
    numbers[1] = step;
  } else {
    // The values are kernel arguments, so that nothing waits.
    seed_and_step.select(0, 0).fill_(static_cast<int64_t>(seed));
    seed_and_step.select(0, 1).fill_(step);
  }
}

// 1 - x for x near 1, such as beta2, keeps its digits only in fp64.
at::ScalarType format_of(ScheduledParameter value) {
  return value == ScheduledParameter::kLabelSmoothing || value == ScheduledParameter::kDropout
             ? at::kFloat
             : at::kDouble;
}

void set(const at::Tensor& shared, int64_t size, int64_t whole_size, const StepRequests& requests) {
  int64_t next = 0;
  const auto set_next = [&](double value) { set(shared.select(0, next++), value); };
  set_next(static_cast<double>(size));
  set_next(static_cast<double>(whole_size));
  for (const bool request : requests) set_next(request ? 1 : 0);
}

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu();
  const auto* const numbers = host.const_data_ptr<double>();
  return {numbers, numbers + host.numel()};
}

// `sums` is indexed by SharedSum.
void read_shared(const std::vector<double>& sums, int64_t size, StepResult& result) {
  result.tally.top1 = static_cast<int64_t>(sums[kSharedTop1]);
  result.tally.count = static_cast<int64_t>(sums[kTargets]);
  result.share = sums[kTargets] / static_cast<double>(size);
  for (size_t i = 0; i < kStepRequests; ++i) result.requests[i] = sums[kFirstRequest + i] > 0;
}

// `mean` is the loss; the count comes from the device.
void set_mean(Tally& tally, double mean, double count) {
  tally.count = std::llround(count);
  tally.loss_sum = mean * static_cast<double>(tally.count);
}

bool is_finite(const StepResult& result) {
  return std::isfinite(result.tally.loss_sum) && std::isfinite(result.gradient_norm);
}

}  // namespace

// The scope of collectives if processes share the step; else null.
std::unique_ptr<parallel::CollectivesScope> TrainStep::sharing() const {
  if (config_.strategy == nullptr) return nullptr;
  return std::make_unique<parallel::CollectivesScope>(config_.strategy->collectives());
}

const char* name_of(ScheduledParameter value) {
  switch (value) {
    case ScheduledParameter::kLabelSmoothing: return "label_smoothing";
    case ScheduledParameter::kMomentum: return "momentum";
    case ScheduledParameter::kBeta2: return "beta2";
    case ScheduledParameter::kWeightDecay: return "weight_decay";
    case ScheduledParameter::kDropout: return "dropout";
  }
  throw InternalError("train step: a value without a name");
}

namespace {

// It is unknown which of the slices lacks the broken samples.
void require_whole(int64_t broken, int64_t step) {
  if (broken == 0) return;
  throw DataError(fmt::format(
      "step {}: {} broken samples; with parallel.name=deterministic there may be none: remove them "
      "from the data, or use parallel.name=ddp",
      step + 1, broken));
}

}  // namespace

TrainStep::TrainStep(model::Model& model, optim::Optimizer& optimizer, const StepConfig& config)
    : model_(model),
      optimizer_(optimizer),
      parameters_(model.parameters()),
      whole_(parameters_),
      config_(config),
      terms_(config.loss->terms()),
      counts_on_device_(!counts_by_size(config, terms_)),
      device_(parameters_.front().tensor.device()),
      lr_(at::zeros({}, at::TensorOptions(at::kFloat).device(device_))),
      loss_weight_(at::zeros_like(lr_)),
      seed_and_step_(at::zeros({2}, at::TensorOptions(at::kLong).device(device_))),
      results_(config.make_results(device_, most_numbers())),
      kept_(model.buffers()) {
  check_optimizer(config, optimizer);
  check_loss(config);
  if (config.strategy != nullptr && config.strategy->shards() != nullptr) {
    check_division(config, config.strategy->shards()->option());
  }
  if (config.strategy != nullptr && config.strategy->averager() != nullptr) {
    check_in_replicas(config, optimizer);
  }
  if (config.strategy != nullptr && config.strategy->pipeline() != nullptr) {
    check_in_pipeline(config);
    pipeline_ = std::make_unique<PipelineStep>(model, *config.strategy->pipeline());
  }
  if (config.strategy != nullptr && config.strategy->forward_group() != nullptr) {
    if (config.strategy->divides_forward_by_samples()) {
      check_in_expert(config);
    } else if (config.strategy->model_is_in_parts()) {
      check_in_tensor(config);
    }
  }
  // The weights are moved and restored.
  if (config.sam) kept_.keep(parameters_);
  for (const ScheduledParameter value : config.scheduled) {
    scheduled_.push_back(at::zeros_like(lr_, format_of(value)));
  }
  if (config.precision == precision::Precision::kFp16) scaler_.emplace(config.loss_scale, device_);
  if (config.spikes) spikes_.emplace(*config.spikes, device_);
  kept_.keep(state());
  if (config.strategy != nullptr) {
    own_seed_and_step_ =
        at::zeros({std::max<int64_t>(1, batch_slices()), 2}, seed_and_step_.options());
    shared_ = at::zeros({kFirstLoss - kTargets}, at::TensorOptions(at::kDouble).device(device_));
    parallel::Collectives& replicas = config.strategy->data_parallel_group();
    if (replicas.size() > 1 && config.loss->traits().compares_samples) {
      rows_group_ = std::make_unique<parallel::CollectivesGroup>(replicas);
    }
    if (batch_slices() > 0 && config.gradient_accumulation > 1) {
      throw UsageError(
          fmt::format("train.gradient_accumulation with parallel.name=deterministic, which "
                      "computes every batch in {} "
                      "parts as it is; set train.gradient_accumulation to 1",
                      batch_slices()));
    }
  }
  if (config.compile) {
    compiled_.emplace(
        [this](const Tensors& tensors, int64_t mode) {
          if (is_recording() && config_.strategy != nullptr) {
            config_.strategy->collectives().note_compiling();
          }
          Tensors results =
              compute(StepInputs::unpack(tensors, inputs_of(batch_names_)), mode % 2 != 0);
          // Gradients of a dry run are discarded; they would use memory besides those of the graph.
          if (is_recording()) optim::drop_gradients(parameters_);
          return results;
        },
        tensors_in(everything()), *config.compile);
  }
}

TrainStep::~TrainStep() = default;

// The maximum number of elements that a step copies to the host.
int64_t TrainStep::most_numbers() const {
  const auto further = config_.strategy != nullptr
                           ? kFirstLoss + static_cast<size_t>(std::max<int64_t>(1, batch_slices()))
                           : size_t{1};
  return static_cast<int64_t>(kFurtherNumbers + (counts_on_device_ ? 1 : 0) + further);
}

bool TrainStep::has_class_labels(const at::Tensor& target) const {
  return config_.loss->traits().predicts_classes && !target.is_floating_point();
}

StepResult TrainStep::run(const NamedTensors& batch, int64_t step, double lr, bool count_correct,
                          const std::vector<double>& values, const SharedBatch& shared) {
  if (!started_.empty()) throw InternalError("train step: earlier results have not been taken");
  start(batch, step, lr, count_correct, values, shared);
  return take();
}

void TrainStep::start(const NamedTensors& batch, int64_t step, double lr, bool count_correct,
                      const std::vector<double>& values, const SharedBatch& shared) {
  set_names(batch);
  const at::Tensor &input = batch[0].tensor, &target = batch[1].tensor;
  if (is_full()) throw InternalError("train step: too many results have not been taken");
  if (values.size() != scheduled_.size()) {
    throw InternalError("train step: another number of values than those that vary");
  }
  kernel::share_cores_with_others();
  const precision::Tf32Guard tf32(config_.precision, device_.type());
  const auto scope = sharing();
  if (config_.strategy != nullptr) config_.strategy->begin_step(step);
  seed_generator(step);
  set(lr_, lr);
  for (size_t i = 0; i < values.size(); ++i) set(scheduled_[i], values[i]);
  const int64_t rows = shared_.defined() && shared.rows > 0 ? shared.rows : target.size(0);
  Started started;
  const Loss& first = *terms_.front().loss;
  started.targets = first.expected_count(target, rows);
  started.result.tally.count = started.targets;
  // Targets that are counted on the device need only the share of samples that are not broken.
  const auto size_of = [&](int64_t own) {
    return counts_on_device_ ? own : first.expected_count(target, own);
  };
  started.size = size_of(rows);
  started.result.has_class_labels = has_class_labels(target);
  // Every sum of losses is divided by the targets of the whole batch, within backward().
  set(loss_weight_, counts_on_device_ ? 1.0 : 1.0 / static_cast<double>(started.targets));
  set(seed_and_step_, config_.seed, step);
  if (shared_.defined()) {
    whole_rows_ = rows;
    if (batch_slices() > 0) require_whole(pieces_of(0).back().end - input.size(0), step);
    for (int64_t i = 0; i < own_seed_and_step_.size(0); ++i) {
      const int64_t number = batch_slices() > 0 ? i : batch_part();
      set(own_seed_and_step_.select(0, i),
          dropout_seed(config_.seed, static_cast<uint64_t>(number)), step);
    }
    set(shared_, counts_here() ? size_of(shared.own_rows.value_or(target.size(0))) : 0,
        config_.strategy->collectives().rank() == 0 ? started.size : 0, shared.requests);
  }
  const StepInputs inputs = inputs_of(batch);
  const Tensors outputs = compute_in_memory(inputs, count_correct, step);
  if (config_.strategy != nullptr) config_.strategy->end_step();
  if (results_) {
    results_->push(outputs[0]);
  } else {
    read_now(started, StepOutputs::unpack(outputs), inputs, step);
    started.is_read = true;
  }
  started_.push_back(std::move(started));
  // A replayed step leaves no gradients; those of an eager step would stay.
  if (compiled_) optim::drop_gradients(parameters_);
}

void TrainStep::read_now(Started& started, const StepOutputs& outputs, const StepInputs& inputs,
                         int64_t step) {
  StepResult& result = started.result;
  result.tally.loss_sum = outputs.loss_sum.item<double>();
  if (outputs.correct.defined()) result.tally.top1 = outputs.correct.item<int64_t>();
  result.gradient_norm = outputs.gradient_norm.item<double>();
  result.is_spike = outputs.spike.defined() && outputs.spike.item<double>() != 0;
  if (shared_.defined()) read_shared(numbers_of(outputs.shared_sums), started.size, result);
  if (counts_on_device_) {
    set_mean(result.tally, result.tally.loss_sum, outputs.target_count.item<double>());
  }
  result.finite = is_finite(result);
  if (!result.finite) {
    result.non_finite_tensor = first_non_finite(inputs, step, result.tally.loss_sum);
  }
}

// Later steps may have been started since, so that gradients are gone and only the parameters can
// tell. If bad updates are skipped, the parameters are finite, and not checked.
void TrainStep::read_late(Started& started) {
  StepResult& result = started.result;
  const std::vector<double> numbers = results_->pop();
  result.tally.loss_sum = numbers[kLossNumber];
  result.gradient_norm = numbers[kNormNumber];
  result.is_spike = numbers[kSpikeNumber] != 0;
  auto further = numbers.begin() + kFurtherNumbers;
  const double count = counts_on_device_ ? *further++ : 0;
  if (shared_.defined()) {
    read_shared({further, numbers.end()}, started.size, result);
  } else if (further != numbers.end()) {
    result.tally.top1 = static_cast<int64_t>(*further);
  }
  if (counts_on_device_) set_mean(result.tally, numbers[kLossNumber], count);
  result.finite = is_finite(result);
  if (result.finite || skips_nonfinite()) return;
  result.non_finite_tensor =
      std::isfinite(result.tally.loss_sum) ? updated().first_non_finite_parameter() : "loss";
}

StepResult TrainStep::take() {
  if (started_.empty()) throw InternalError("train step: no result is under way");
  Started started = std::move(started_.front());
  started_.pop_front();
  if (!started.is_read) read_late(started);
  return std::move(started.result);
}

bool TrainStep::can_take() const {
  return !started_.empty() && (started_.front().is_read || results_->is_there());
}

bool TrainStep::is_full() const { return results_ && results_->is_full(); }

// A step is compiled for one set of field names.
void TrainStep::set_names(const NamedTensors& batch) {
  const auto is_same = [](const NamedTensor& a, const NamedTensor& b) { return a.name == b.name; };
  if (std::equal(batch.begin(), batch.end(), batch_names_.begin(), batch_names_.end(), is_same)) {
    return;
  }
  if (!batch_names_.empty() || batch.size() < 2 || batch[0].name != "input" ||
      batch[1].name != "target") {
    throw InternalError("train step: a batch has 'input' and 'target' first, and keeps its fields");
  }
  for (const NamedTensor& field : batch) {
    if (field.name == "weight" && !config_.has_weights) {
      throw InternalError("train step: a batch has weights, but its config says that it has none");
    }
    batch_names_.push_back({field.name, at::Tensor()});
  }
}

StepInputs TrainStep::inputs_of(const NamedTensors& batch) const {
  return {.batch = batch,
          .lr = lr_,
          .loss_weight = loss_weight_,
          .seed_and_step = seed_and_step_,
          .scheduled = scheduled_,
          .own_seed_and_step = own_seed_and_step_,
          .shared = shared_};
}

// A replayed step has not kept the gradients. Then the parameters tell, if the update was applied
// to them, or the gradients of another pass.
std::string TrainStep::first_non_finite(const StepInputs& inputs, int64_t step, double loss_sum) {
  if (!std::isfinite(loss_sum)) return "loss";
  if (keeps_gradients_of_parts()) {
    // All processes together, of which some may have run an eager step.
    std::string name = updated().first_non_finite_gradient();
    if (!name.empty() || !compiled_) return name;
  } else if (!optim::gradients_of(parameters_).empty()) {
    return optim::first_non_finite_gradient(parameters_);
  }
  if (std::string name = updated().first_non_finite_parameter(); !name.empty()) return name;
  seed_generator(step);
  forward_backward(inputs, counts_on_device_ ? count_targets_of_all(inputs) : Counts(),
                   /*count_correct=*/false);
  return updated().first_non_finite_gradient();
}

compile::GraphStages TrainStep::graphs(const NamedTensors& batch, const std::string& stage,
                                       const compile::TimingConfig& timing) {
  set_names(batch);
  const at::Tensor &input = batch[0].tensor, &target = batch[1].tensor;
  compile::StagesConfig config{.only = stage, .timing = timing};
  if (config_.compile) config.passes_off = config_.compile->passes_off;
  const auto scope = sharing();
  set(lr_, 0);
  whole_rows_ = input.size(0);
  if (pipeline_) {
    kept_.capture();
    plan_pipeline(batch);
    kept_.restore();
  }
  const auto targets = terms_.front().loss->expected_count(target, target.size(0));
  set(loss_weight_, counts_on_device_ ? 1.0 : 1.0 / static_cast<double>(targets));
  auto stages = compile::graph_stages(
      [this](const Tensors& tensors) {
        return compute(StepInputs::unpack(tensors, inputs_of(batch_names_)),
                       /*count_correct=*/false);
      },
      inputs_of(batch).pack(), graph_names(), config);
  optim::drop_gradients(parameters_);
  return stages;
}

compile::GraphNames TrainStep::graph_names() const {
  compile::GraphNames names{.inputs = {}, .state = everything()};
  for (const NamedTensor& field : batch_names_) names.inputs.push_back(field.name);
  names.inputs.insert(names.inputs.end(), {"lr", "loss_weight", "seed_and_step"});
  for (const ScheduledParameter value : config_.scheduled)
    names.inputs.emplace_back(name_of(value));
  if (shared_.defined()) names.inputs.insert(names.inputs.end(), {"own_seed_and_step", "shared"});
  return names;
}

std::map<int64_t, compile::GraphListing> TrainStep::compiled_graphs() const {
  if (!compiled_) return {};
  return compile::list_graphs(*compiled_, graph_names());
}

const compile::CompileReport* TrainStep::compile_report() const {
  return compiled_ ? &compiled_->report() : nullptr;
}

// All tensors that the step uses in addition to its arguments.
NamedTensors TrainStep::everything() const {
  NamedTensors all;
  for (const auto& list : {model_.parameters(), model_.buffers(), optimizer_.state(), state()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  if (config_.strategy != nullptr) {
    for (const auto& one : config_.strategy->state()) all.push_back(one);
  }
  for (const auto& one : config_.loss->tensors()) all.push_back(one);
  if (!config_.distill) return all;
  const model::Model& teacher = *config_.distill->teacher;
  for (const auto& list : {teacher.parameters(), teacher.buffers()}) {
    for (const auto& [name, tensor] : list) all.push_back({"teacher." + name, tensor});
  }
  return all;
}

NamedTensors TrainStep::state() const {
  NamedTensors all = scaler_ ? scaler_->state() : NamedTensors();
  if (spikes_) {
    for (const auto& one : spikes_->state()) all.push_back(one);
  }
  return all;
}

const optim::UpdatedParameters& TrainStep::updated() const {
  const optim::UpdatedParameters* const parts =
      config_.strategy != nullptr ? config_.strategy->updated() : nullptr;
  return parts != nullptr ? *parts : whole_;
}

// Other parts give the memory of gradients to the parameters that are gathered after an update.
bool TrainStep::keeps_gradients_of_parts() const {
  return updated().are_parts() && config_.strategy->shards() == nullptr;
}

const parallel::ModelAverager* TrainStep::local_replicas() const {
  const parallel::ModelAverager* const averager =
      config_.strategy != nullptr ? config_.strategy->averager() : nullptr;
  return averager != nullptr && averager->is_local_step() ? averager : nullptr;
}

void TrainStep::seed_generator(int64_t step) const {
  seed_step(config_.seed, step, device_, batch_part());
}

void seed_step(uint64_t seed, int64_t step, at::Device device, int64_t rank) {
  Philox random(seed, Purpose::kDropout, static_cast<uint64_t>(rank), static_cast<uint64_t>(step));
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(random.next_u64());
}

}  // namespace gallop::train

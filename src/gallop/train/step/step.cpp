#include "gallop/train/step/step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/shared_cores.h"
#include "gallop/optim/gradients.h"
#include "gallop/train/losses/shapes.h"
#include "gallop/train/step/checks.h"
#include "gallop/train/step/seed.h"

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

StepInputs make_inputs(const StepConfig& config, const StepSharing& sharing, at::Device device) {
  const auto zeros = [device](c10::IntArrayRef sizes, at::ScalarType type) {
    return at::zeros(sizes, at::TensorOptions(type).device(device));
  };
  StepInputs inputs{.lr = zeros({}, at::kFloat),
                    .loss_weight = zeros({}, at::kFloat),
                    .seed_and_step = zeros({2}, at::kLong)};
  for (const ScheduledParameter value : config.scheduled) {
    inputs.scheduled.push_back(zeros({}, format_of(value)));
  }
  if (sharing.is_shared()) {
    inputs.own_seed_and_step = zeros({static_cast<int64_t>(sharing.losses()), 2}, at::kLong);
    inputs.shared = zeros({kFirstLoss - kTargets}, at::kDouble);
  }
  return inputs;
}

// It is unknown which of the slices lacks the broken samples.
void require_whole(int64_t broken, int64_t step) {
  if (broken == 0) return;
  throw DataError(fmt::format(
      "step {}: {} broken samples; with parallel.name=deterministic there may be none: remove them "
      "from the data, or use parallel.name=ddp",
      step + 1, broken));
}

// The checks precede everything that relies on them.
const StepConfig& checked(const StepConfig& config, const optim::Optimizer& optimizer) {
  check_optimizer(config, optimizer);
  check_step(config, optimizer);
  return config;
}

}  // namespace

TrainStep::TrainStep(model::Model& model, optim::Optimizer& optimizer, const StepConfig& config)
    : config_(checked(config, optimizer)),
      sharing_(config.strategy),
      function_(model, optimizer, config_, sharing_),
      inputs_(make_inputs(config_, sharing_, function_.parameters().front().tensor.device())),
      results_(config.make_results(inputs_.lr.device(),
                                   StepNumbers::most(function_.loss().counts_on_device(),
                                                     sharing_.is_shared(), sharing_.losses()))),
      runner_({.function = function_,
               .model = model,
               .optimizer = optimizer,
               .config = config_,
               .sharing = sharing_,
               .like = inputs_,
               .returns_one = results_ != nullptr}) {}

StepResult TrainStep::run(const NamedTensors& batch, int64_t step, double lr, bool count_correct,
                          const std::vector<double>& values, const SharedBatch& shared) {
  if (!started_.empty()) throw InternalError("train step: earlier results have not been taken");
  start(batch, step, lr, count_correct, values, shared);
  return take();
}

void TrainStep::start(const NamedTensors& batch, int64_t step, double lr, bool count_correct,
                      const std::vector<double>& values, const SharedBatch& shared) {
  set_names(batch);
  if (is_full()) throw InternalError("train step: too many results have not been taken");
  kernel::share_cores_with_others();
  const precision::Tf32Guard tf32(config_.precision, inputs_.lr.device().type());
  const auto scope = sharing_.scope();
  if (sharing_.is_shared()) sharing_.strategy().begin_step(step);
  seed_step(config_.seed, step, inputs_.lr.device(), sharing_.batch_part());
  Started started = set_inputs(batch, step, lr, values, shared);
  const StepInputs inputs = inputs_of(batch);
  const std::vector<at::Tensor> outputs = runner_.run(inputs, count_correct, step);
  if (sharing_.is_shared()) sharing_.strategy().end_step();
  if (results_) {
    results_->push(outputs.front());
  } else {
    read(started, StepNumbers::of(StepOutputs::unpack(outputs)));
    StepResult& result = started.result;
    if (!result.finite) {
      result.non_finite_tensor = first_non_finite(inputs, step, result.tally.loss_sum);
    }
    started.is_read = true;
  }
  started_.push_back(std::move(started));
  // A replayed step leaves no gradients; those of an eager step would stay.
  if (config_.compile) optim::drop_gradients(function_.parameters());
}

StepResult TrainStep::take() {
  if (started_.empty()) throw InternalError("train step: no result is under way");
  Started started = std::move(started_.front());
  started_.pop_front();
  if (started.is_read) return std::move(started.result);
  read(started,
       StepNumbers::of(results_->pop(), function_.loss().counts_on_device(), sharing_.is_shared()));
  StepResult& result = started.result;
  // Later steps may have been started since, so that gradients are gone and only the parameters can
  // tell. If bad updates are skipped, the parameters are finite, and not checked.
  if (!result.finite && !skips_nonfinite()) {
    result.non_finite_tensor = std::isfinite(result.tally.loss_sum)
                                   ? function_.update().updated().first_non_finite_parameter()
                                   : "loss";
  }
  return std::move(started.result);
}

bool TrainStep::can_take() const {
  return !started_.empty() && (started_.front().is_read || results_->is_there());
}

bool TrainStep::is_full() const { return results_ && results_->is_full(); }

// A step is compiled for one set of field names.
void TrainStep::set_names(const NamedTensors& batch) {
  const auto is_same = [](const NamedTensor& a, const NamedTensor& b) { return a.name == b.name; };
  NamedTensors& names = inputs_.batch;
  if (std::equal(batch.begin(), batch.end(), names.begin(), names.end(), is_same)) return;
  if (!names.empty() || batch.empty()) {
    throw InternalError("train step: a batch has fields, the same ones in every step");
  }
  for (const NamedTensor& field : batch) {
    if (field.name == "weight" && !config_.has_weights) {
      throw InternalError("train step: a batch has weights, but its config says that it has none");
    }
    names.push_back({field.name, at::Tensor()});
  }
}

TrainStep::Started TrainStep::set_inputs(const NamedTensors& batch, int64_t step, double lr,
                                         const std::vector<double>& values,
                                         const SharedBatch& shared) {
  if (values.size() != inputs_.scheduled.size()) {
    throw InternalError("train step: another number of values than those that vary");
  }
  set(inputs_.lr, lr);
  for (size_t i = 0; i < values.size(); ++i) set(inputs_.scheduled[i], values[i]);
  const int64_t rows = sharing_.is_shared() && shared.rows > 0 ? shared.rows : rows_of(batch);
  const int64_t targets = function_.loss().expected_count(batch, rows);
  Started started{.size = size_of(batch, rows)};
  started.result.tally.count = targets;
  started.result.has_class_labels = function_.loss().has_class_labels(batch);
  set_loss_weight(targets);
  set(inputs_.seed_and_step, config_.seed, step);
  if (sharing_.is_shared()) {
    function_.micro_batches().set_whole_rows(rows);
    set_shared_inputs(batch, step, started.size, shared);
  }
  return started;
}

// `size`: that of the whole batch.
void TrainStep::set_shared_inputs(const NamedTensors& batch, int64_t step, int64_t size,
                                  const SharedBatch& shared) {
  const bool is_sliced = sharing_.batch_slices() > 0;
  if (is_sliced) {
    require_whole(function_.micro_batches().of(0).back().end - rows_of(batch), step);
  }
  const at::Tensor& seeds = inputs_.own_seed_and_step;
  for (int64_t i = 0; i < seeds.size(0); ++i) {
    const int64_t number = is_sliced ? i : sharing_.batch_part();
    set(seeds.select(0, i), dropout_seed(config_.seed, static_cast<uint64_t>(number)), step);
  }
  const int64_t own = size_of(batch, shared.own_rows.value_or(rows_of(batch)));
  int64_t next = 0;
  const auto set_next = [&](int64_t value) {
    set(inputs_.shared.select(0, next++), static_cast<double>(value));
  };
  set_next(sharing_.counts_here() ? own : 0);
  set_next(sharing_.strategy().collectives().rank() == 0 ? size : 0);
  for (const bool request : shared.requests) set_next(request ? 1 : 0);
}

// Every sum of losses is divided by the targets of the whole batch, within the backward pass.
void TrainStep::set_loss_weight(int64_t targets) {
  const bool counts_on_device = function_.loss().counts_on_device();
  set(inputs_.loss_weight, counts_on_device ? 1.0 : 1.0 / static_cast<double>(targets));
}

// Targets that are counted on the device need only the share of samples that are not broken.
int64_t TrainStep::size_of(const NamedTensors& batch, int64_t rows) const {
  return function_.loss().counts_on_device() ? rows : function_.loss().expected_count(batch, rows);
}

StepInputs TrainStep::inputs_of(const NamedTensors& batch) const {
  StepInputs inputs = inputs_;
  inputs.batch = batch;
  return inputs;
}

void TrainStep::read(Started& started, const StepNumbers& numbers) const {
  StepResult& result = started.result;
  Tally& tally = result.tally;
  tally.loss_sum = numbers.loss_sum;
  tally.top1 = numbers.correct;
  result.gradient_norm = numbers.gradient_norm;
  result.is_spike = numbers.spike != 0;
  if (const std::vector<double>& sums = numbers.shared_sums; !sums.empty()) {
    tally.top1 = static_cast<int64_t>(sums[kSharedTop1]);
    tally.count = static_cast<int64_t>(sums[kTargets]);
    result.share = sums[kTargets] / static_cast<double>(started.size);
    for (size_t i = 0; i < kStepRequests; ++i) result.requests[i] = sums[kFirstRequest + i] > 0;
  }
  if (function_.loss().counts_on_device()) {
    tally.count = std::llround(numbers.target_count);
    tally.loss_sum = numbers.loss_sum * static_cast<double>(tally.count);
  }
  result.finite = std::isfinite(tally.loss_sum) && std::isfinite(result.gradient_norm);
}

// A replayed step has not kept the gradients. Then the parameters tell, if the update was applied
// to them, or the gradients of another pass.
std::string TrainStep::first_non_finite(const StepInputs& inputs, int64_t step, double loss_sum) {
  if (!std::isfinite(loss_sum)) return "loss";
  const WeightUpdate& update = function_.update();
  if (update.keeps_gradients_of_parts()) {
    // All processes together, of which some may have run an eager step.
    std::string name = update.updated().first_non_finite_gradient();
    if (!name.empty() || !config_.compile) return name;
  } else if (!optim::gradients_of(function_.parameters()).empty()) {
    return optim::first_non_finite_gradient(function_.parameters());
  }
  if (std::string name = update.updated().first_non_finite_parameter(); !name.empty()) return name;
  seed_step(config_.seed, step, inputs_.lr.device(), sharing_.batch_part());
  function_.compute_gradients(inputs);
  return update.updated().first_non_finite_gradient();
}

compile::GraphStages TrainStep::graphs(const NamedTensors& batch, const std::string& stage,
                                       const compile::TimingConfig& timing) {
  set_names(batch);
  compile::StagesConfig config{.only = stage, .timing = timing};
  if (config_.compile) config.passes_off = config_.compile->passes_off;
  const auto scope = sharing_.scope();
  set(inputs_.lr, 0);
  function_.micro_batches().set_whole_rows(rows_of(batch));
  runner_.plan(batch);
  set_loss_weight(function_.loss().expected_count(batch, rows_of(batch)));
  auto stages = compile::graph_stages(
      [this](const std::vector<at::Tensor>& tensors) {
        return runner_.compute(StepInputs::unpack(tensors, inputs_), /*count_correct=*/false);
      },
      inputs_of(batch).pack(), graph_names(), config);
  optim::drop_gradients(function_.parameters());
  return stages;
}

compile::GraphNames TrainStep::graph_names() const {
  return {.inputs = inputs_.names(config_), .state = function_.tensors()};
}

std::map<int64_t, compile::GraphListing> TrainStep::compiled_graphs() const {
  const compile::CompiledFunction* const compiled = runner_.compiled();
  if (compiled == nullptr) return {};
  return compile::list_graphs(*compiled, graph_names());
}

const compile::CompileReport* TrainStep::compile_report() const {
  const compile::CompiledFunction* const compiled = runner_.compiled();
  return compiled != nullptr ? &compiled->report() : nullptr;
}

const char* TrainStep::infinite_because() const { return config_.loss->traits().infinite_because; }

}  // namespace gallop::train

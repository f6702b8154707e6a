#include "gallop/train/prove/plain_step.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/stock_operators.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/optim/gradients.h"
#include "gallop/train/losses/members.h"
#include "gallop/train/losses/shapes.h"
#include "gallop/train/prove/block_outputs.h"
#include "gallop/train/step/seed.h"

namespace gallop::train {

namespace {

NamedTensors copies_of(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) copies.push_back({name, tensor.detach().clone()});
  return copies;
}

void load_all(const NamedTensors& from, const NamedTensors& into) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : into) {
    const at::Tensor* saved = find_tensor(from, name);
    if (saved == nullptr || saved->sizes() != tensor.sizes()) {
      throw InternalError(fmt::format("plain step: '{}' has no state of its shape", name));
    }
    tensor.copy_(*saved);
  }
}

at::Tensor rows_of(const at::Tensor& tensor, const Rows& rows) {
  std::vector<at::Tensor> ranges;
  for (const auto& [begin, end] : rows) ranges.push_back(tensor.slice(0, begin, end));
  return ranges.size() == 1 ? ranges.front() : at::cat(ranges);
}

NamedTensors rows_of(const NamedTensors& batch, const Rows& rows) {
  NamedTensors some;
  for (const auto& [name, tensor] : batch) some.push_back({name, rows_of(tensor, rows)});
  return some;
}

double norm_of(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor.to(at::kDouble)).item<double>();
}

double norm_of_gradients(const NamedTensors& parameters) {
  double squares = 0;
  for (const at::Tensor& gradient : optim::gradients_of(parameters)) {
    squares += std::pow(norm_of(gradient), 2);
  }
  return std::sqrt(squares);
}

// The mean of the buffers over several parts, each of which starts from those before the step.
class MeanBuffers {
 public:
  explicit MeanBuffers(const NamedTensors& live) : live_(live), before_(copies_of(live)) {}

  void begin() const { load_all(before_, live_); }
  void end() {
    const at::NoGradGuard no_grad;
    count_ += 1;
    if (sums_.empty()) {
      sums_ = copies_of(live_);
      return;
    }
    for (size_t i = 0; i < live_.size(); ++i) {
      if (live_[i].tensor.is_floating_point()) sums_[i].tensor.add_(live_[i].tensor);
    }
  }
  void take_mean() const {
    const at::NoGradGuard no_grad;
    if (count_ < 2) return;
    for (const auto& [name, tensor] : sums_) {
      if (tensor.is_floating_point()) tensor.div_(static_cast<double>(count_));
    }
    load_all(sums_, live_);
  }

 private:
  NamedTensors live_, before_, sums_{};
  int64_t count_ = 0;
};

}  // namespace

StepState copy_state(const model::Model& model, const optim::Optimizer& optimizer) {
  return {.parameters = copies_of(model.parameters()),
          .buffers = copies_of(model.buffers()),
          .optimizer = copies_of(optimizer.state())};
}

void convert_to_fp64(const model::Model& model) {
  for (const NamedTensors& list : {model.parameters(), model.buffers()}) {
    for (const auto& [name, tensor] : list) {
      if (!tensor.is_floating_point()) continue;
      // set_data() keeps the tensor objects that the model knows.
      at::Tensor same = tensor;
      same.set_data(tensor.detach().to(at::kDouble));
    }
  }
}

PlainStep::PlainStep(model::Model& model, optim::Optimizer& optimizer, const StepConfig& config,
                     double loss_scale, NamedTensors updated)
    : model_(model),
      optimizer_(optimizer),
      parameters_(model.parameters()),
      updated_(std::move(updated)),
      config_(config),
      loss_scale_(loss_scale) {}

void PlainStep::load(const StepState& state) {
  load_all(state.parameters, parameters_);
  load_all(state.parameters, updated_);
  load_all(state.buffers, model_.buffers());
  load_all(state.optimizer, optimizer_.state());
}

at::Tensor PlainStep::scheduled(ScheduledParameter value, const std::vector<double>& values) const {
  for (size_t i = 0; i < config_.scheduled.size(); ++i) {
    if (config_.scheduled[i] != value) continue;
    const bool is_narrow =
        value == ScheduledParameter::kLabelSmoothing || value == ScheduledParameter::kDropout;
    return at::full({}, values[i],
                    at::TensorOptions(is_narrow ? at::kFloat : at::kDouble)
                        .device(parameters_.front().tensor.device()));
  }
  return {};
}

// In the type of the parameters and in the usual memory order.
NamedTensors PlainStep::own_batch(const NamedTensors& batch) const {
  const bool is_wide = parameters_.front().tensor.scalar_type() == at::kDouble;
  NamedTensors own;
  for (const auto& [name, tensor] : batch) {
    const bool converts = is_wide && tensor.is_floating_point();
    own.push_back({name, (converts ? tensor.to(at::kDouble) : tensor).contiguous()});
  }
  return own;
}

// The factor of the sum of each term, the teacher's last.
std::vector<double> PlainStep::factors_of(const NamedTensors& batch) const {
  std::vector<double> factors;
  const double own_weight = config_.distill ? 1 - config_.distill->weight : 1;
  const auto inverse = [](const at::Tensor& count) {
    const auto number = count.item<double>();
    return number == 0 ? 0 : 1 / number;
  };
  for (const LossTerm& term : config_.loss->terms()) {
    factors.push_back(own_weight * term.weight * inverse(term.loss->count(batch)));
  }
  if (config_.distill) {
    factors.push_back(
        config_.distill->weight *
        inverse(distillation_count(field_of(batch, "target"), config_.loss->traits().ignored)));
  }
  return factors;
}

double PlainStep::forward_backward(const NamedTensors& batch, const std::vector<BatchPart>& parts,
                                   int64_t step, const std::vector<double>& values,
                                   StepValues* kept) {
  optim::drop_gradients(parameters_);
  const NamedTensors own = own_batch(batch);
  const std::vector<double> factors = factors_of(own);
  const auto terms = config_.loss->terms();
  double loss = 0;
  MeanBuffers buffers(model_.buffers());
  at::Tensor statistics;
  std::optional<BlockOutputs> blocks;
  if (kept != nullptr) blocks.emplace(model_);
  for (const BatchPart& part : parts) {
    buffers.begin();
    const at::Tensor draws = at::tensor({static_cast<int64_t>(part.seed), step}, at::kLong)
                                 .to(parameters_.front().tensor.device());
    const model::functional::DropoutScope scope(draws,
                                                scheduled(ScheduledParameter::kDropout, values));
    for (const Rows& rows : part.pieces) {
      const NamedTensors piece = rows_of(own, rows);
      at::Tensor sum, auxiliary;
      {
        const precision::AutocastGuard autocast(config_.precision,
                                                parameters_.front().tensor.device().type());
        model::Output output = model_.forward_to_head(piece);
        if (kept != nullptr) {
          kept->outputs.push_back(output.x.detach());
          kept->activations.push_back(blocks->take(piece.front().tensor.size(0)));
        }
        auxiliary = output.auxiliary_loss;
        if (output.step_statistics.defined()) {
          const at::Tensor& counted = output.step_statistics;
          statistics = statistics.defined() ? statistics + counted : counted;
        }
        output = {.x = output.logits(), .loss = output.loss, .members = output.members};
        for (size_t i = 0; i < terms.size(); ++i) {
          Loss::Request request;
          if (terms[i].loss->traits().takes_smoothing) {
            request.label_smoothing = scheduled(ScheduledParameter::kLabelSmoothing, values);
          }
          const at::Tensor term =
              losses_of(*terms[i].loss, output, piece, request).sum * factors[i];
          sum = sum.defined() ? sum + term : term;
        }
        if (config_.distill) {
          at::Tensor taught;
          {
            const at::NoGradGuard no_grad;
            taught = config_.distill->teacher->forward(rows_of(batch, rows));
          }
          sum =
              sum + distillation_sum(output.x, taught, piece[1].tensor,
                                     config_.distill->temperature, config_.loss->traits().ignored) *
                        factors.back();
        }
      }
      if (auxiliary.defined()) {
        sum = sum + auxiliary / static_cast<double>(own.front().tensor.numel());
      }
      loss += sum.item<double>();
      sum.mul(loss_scale_).backward();
    }
    buffers.end();
  }
  const at::NoGradGuard no_grad;
  buffers.take_mean();
  if (statistics.defined() && kept != nullptr) model_.update_statistics(statistics);
  for (const auto& [name, tensor] : parameters_) {
    if (tensor.grad().defined()) {
      tensor.mutable_grad().div_(loss_scale_);
    } else if (config_.strategy != nullptr) {
      tensor.mutable_grad() = at::zeros_like(tensor);
    }
  }
  return loss;
}

void PlainStep::perturb_weights(double distance) {
  const at::NoGradGuard no_grad;
  const double share = distance / (norm_of_gradients(parameters_) + 1e-12);
  for (const auto& [name, tensor] : parameters_) {
    if (tensor.grad().defined()) tensor.add_(tensor.grad(), share);
  }
}

// Returns the norm before.
double PlainStep::clip() {
  const at::NoGradGuard no_grad;
  const double norm = norm_of_gradients(parameters_);
  const std::vector<at::Tensor> gradients = optim::gradients_of(parameters_);
  if (config_.clip_value) {
    for (const at::Tensor& one : gradients) one.clamp_(-*config_.clip_value, *config_.clip_value);
  }
  if (config_.clip_adaptive) optim::clip_adaptively(parameters_, *config_.clip_adaptive);
  if (config_.clip_grad_norm && norm > *config_.clip_grad_norm) {
    for (const at::Tensor& one : gradients) one.mul_(*config_.clip_grad_norm / norm);
  }
  return norm;
}

StepValues PlainStep::run(const NamedTensors& batch, const std::vector<BatchPart>& parts,
                          int64_t step, double lr, const std::vector<double>& values) {
  std::optional<kernel::StockOperatorsScope> stock(std::in_place);
  model_.set_training(true);
  seed_step(config_.seed, step, parameters_.front().tensor.device());
  StepValues result;
  result.loss = forward_backward(batch, parts, step, values, &result);
  if (config_.sam) {
    const NamedTensors weights = copies_of(parameters_), buffers = copies_of(model_.buffers());
    perturb_weights(*config_.sam);
    forward_backward(batch, parts, step, values, nullptr);
    load_all(weights, parameters_);
    load_all(buffers, model_.buffers());
  }
  result.gradient_norm = clip();
  for (const auto& [name, tensor] : parameters_) {
    const at::Tensor& gradient = tensor.grad();
    result.gradients.push_back({name, gradient.defined() ? gradient.clone() : at::Tensor()});
  }
  // Types of their own have kernels of their own.
  if (!updated_.empty()) stock.reset();
  update(step, lr, values);
  optim::drop_gradients(parameters_);
  return result;
}

void PlainStep::update(int64_t step, double lr, const std::vector<double>& values) {
  const at::NoGradGuard no_grad;
  const c10::Device device = parameters_.front().tensor.device();
  for (size_t i = 0; i < updated_.size(); ++i) {
    const at::Tensor &gradient = parameters_[i].tensor.grad(), &own = updated_[i].tensor;
    own.mutable_grad() = gradient.defined() ? at::zeros_like(own).copy_(gradient) : at::Tensor();
  }
  optimizer_.step(
      at::full({}, lr, at::TensorOptions(at::kFloat).device(device)), {}, {},
      {.momentum = scheduled(ScheduledParameter::kMomentum, values),
       .beta2 = scheduled(ScheduledParameter::kBeta2, values),
       .weight_decay = scheduled(ScheduledParameter::kWeightDecay, values),
       .draws = at::tensor({static_cast<int64_t>(config_.seed), step}, at::kLong).to(device)});
  for (size_t i = 0; i < updated_.size(); ++i) parameters_[i].tensor.copy_(updated_[i].tensor);
  optim::drop_gradients(updated_);
}

bool PlainStep::draws_dropout(const NamedTensors& batch) {
  const kernel::StockOperatorsScope stock;
  const at::NoGradGuard no_grad;
  model_.set_training(true);
  const at::Tensor draws =
      at::tensor({int64_t{0}, int64_t{0}}, at::kLong).to(parameters_.front().tensor.device());
  const model::functional::DropoutScope scope(draws);
  const precision::AutocastGuard autocast(config_.precision,
                                          parameters_.front().tensor.device().type());
  model_.forward_to_head(own_batch(batch));
  return model::functional::DropoutScope::place().calls > 0;
}

}  // namespace gallop::train

#include "gallop/parallel/model_averager.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/base/error.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

constexpr int64_t kGroupBytes = int64_t{25} << 20;

}  // namespace

ModelAverager::ModelAverager(Collectives& collectives, NamedTensors parameters,
                             NamedTensors buffers, const AveragingSchedule& schedule,
                             const std::optional<OuterOptimizer>& outer)
    : collectives_(collectives),
      parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      schedule_(schedule),
      outer_(outer),
      statistics_(tensors_in(buffers_)) {
  if (!outer_) return;
  for (const auto& [name, tensor] : parameters_) {
    start_.push_back({"start." + name, at::empty_like(tensor.detach())});
    if (outer_->momentum == 0) continue;
    momentum_.push_back({"momentum." + name, at::zeros_like(tensor.detach())});
  }
}

void ModelAverager::begin_step(int64_t step) {
  step_ = step;
  is_local_ = step >= schedule_.warmup_steps;
  if (!is_local_ || !outer_ || has_start_) return;
  const at::NoGradGuard no_grad;
  copy_all(tensors_in(parameters_), tensors_in(start_));
  has_start_ = true;
}

void ModelAverager::end_step() {
  if (!is_local_) return;
  has_trained_locally_ = true;
  are_equal_ = false;
  if ((step_ + 1 - schedule_.warmup_steps) % schedule_.sync_every != 0) return;
  exchange(outer_.has_value());
  are_equal_ = true;
}

// Sends differences to the start, which keep more digits than parameters do.
void ModelAverager::start(Group& group, bool differences) const {
  std::vector<at::Tensor> parameters;
  for (size_t i = group.begin; i < group.end; ++i) parameters.push_back(parameters_[i].tensor);
  group.sent =
      at::empty({count_numbers(parameters)}, parameters.front().options().requires_grad(false));
  group.places = places_in(group.sent, 0, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (differences) {
      at::sub_out(group.places[i], start_[group.begin + i].tensor, parameters[i]);
    } else {
      group.places[i].copy_(parameters[i]);
    }
  }
  all_reduce_async(group.sent);
}

void ModelAverager::finish(Group& group, bool outer) {
  wait_tensor(group.sent);
  group.sent.div_(collectives_.size());
  for (size_t i = group.begin; i < group.end; ++i) {
    at::Tensor mean = group.places[i - group.begin];
    if (outer) {
      if (outer_->momentum != 0) {
        const at::Tensor& momentum = momentum_[i].tensor;
        momentum.mul_(outer_->momentum).add_(mean);
        mean = outer_->nesterov ? mean.add(momentum, outer_->momentum) : momentum;
      }
      mean = start_[i].tensor.sub_(mean, outer_->lr);
    }
    parameters_[i].tensor.copy_(mean);
  }
  group = {};
}

// One group of parameters is sent while the next is packed.
void ModelAverager::exchange(bool outer) {
  const at::NoGradGuard no_grad;
  const CollectivesScope scope(collectives_);
  statistics_.start();
  Group sent{};
  for (size_t begin = 0; begin < parameters_.size();) {
    size_t end = begin;
    int64_t bytes = 0;
    const auto type = parameters_[begin].tensor.scalar_type();
    for (; end < parameters_.size() && parameters_[end].tensor.scalar_type() == type; ++end) {
      bytes += static_cast<int64_t>(parameters_[end].tensor.nbytes());
      if (end > begin && bytes > kGroupBytes) break;
    }
    Group next{.begin = begin, .end = end, .sent = {}, .places = {}};
    start(next, outer);
    if (sent.sent.defined()) finish(sent, outer);
    sent = std::move(next);
    begin = end;
  }
  if (sent.sent.defined()) finish(sent, outer);
  statistics_.finish(collectives_.size());
}

void ModelAverager::use_mean(bool mean) {
  const bool had_means = means_ > 0;
  means_ += mean ? 1 : -1;
  if (means_ < 0) throw InternalError("model averager: the model has no means");
  if (had_means == (means_ > 0)) return;
  const at::NoGradGuard no_grad;
  if (mean) {
    if (are_equal_) return;
    for (const auto& list : {parameters_, buffers_}) {
      for (const auto& [name, tensor] : list) own_.push_back({name, tensor.detach().clone()});
    }
    exchange(/*outer=*/false);
    return;
  }
  if (own_.empty()) return;
  const NamedTensors own = std::move(own_);
  own_.clear();
  copy_all(tensors_in(own), tensors_in(replica()));
}

NamedTensors ModelAverager::replica() const {
  if (!own_.empty()) return own_;
  NamedTensors all = parameters_;
  all.insert(all.end(), buffers_.begin(), buffers_.end());
  return all;
}

NamedTensors ModelAverager::outer_state() const {
  NamedTensors all = start_;
  all.insert(all.end(), momentum_.begin(), momentum_.end());
  return all;
}

void ModelAverager::restart() {
  own_.clear();
  are_equal_ = true;
  has_trained_locally_ = has_start_ = false;
  for (const auto& [name, tensor] : momentum_) tensor.zero_();
}

void ModelAverager::restored(bool equal, bool outer) {
  are_equal_ = equal;
  has_trained_locally_ = true;
  has_start_ = outer && outer_.has_value();
}

}  // namespace gallop::parallel

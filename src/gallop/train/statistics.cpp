#include "gallop/train/statistics.h"

#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/base/progress.h"
#include "gallop/data/device_loader.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/train/inference_passes.h"
#include "gallop/train/step/seed.h"
#include "gallop/train/step/step.h"
#include "gallop/train/tensor_snapshot.h"

namespace gallop::train {

namespace {

bool is_statistic(const std::string& name) {
  return name.ends_with("running_mean") || name.ends_with("running_var");
}

/// Means of batch statistics. A model shows these only through the update of its running
/// statistics: running = (1 - momentum) * running + momentum * batch's.
class Means {
 public:
  Means(model::Model& model, std::vector<at::Tensor> running, const StatisticsConfig& config)
      : model_(model), running_(std::move(running)), config_(config) {
    for (const at::Tensor& tensor : running_) initial_.push_back(tensor.clone());
  }

  void add(const data::Batch& batch, int64_t step) {
    if (samples_ == 0) find_shares(batch, step);
    forward_from_zero(batch, step);
    const auto weight = static_cast<double>(batch.size());
    for (size_t i = 0; i < running_.size(); ++i) {
      sums_[i].add_(running_[i].to(at::kDouble) / shares_[i], weight);
    }
    samples_ += weight;
  }

  /// Must follow the last batch.
  void finish() { passes_.finish(); }
  void put_means() const {
    for (size_t i = 0; i < running_.size(); ++i) running_[i].copy_(sums_[i] / samples_);
  }
  bool is_empty() const { return samples_ == 0; }

 private:
  // The momentum follows from the same batch run twice: with statistics of 0, and of the size of
  // what that leaves, so that it does not get lost beside large statistics.
  void find_shares(const data::Batch& batch, int64_t step) {
    std::vector<at::Tensor> from_zero, starts;
    do {
      from_zero.clear();
      starts.clear();
      forward_from_zero(batch, step);
      for (const at::Tensor& tensor : running_) {
        from_zero.push_back(tensor.clone());
        starts.push_back(tensor.abs().clamp_min(1));
      }
      forward_from(starts, batch, step);
    } while (leave_out_frozen(starts));
    for (size_t i = 0; i < running_.size(); ++i) {
      const at::Tensor kept = (running_[i].to(at::kDouble) - from_zero[i]) / starts[i];
      shares_.push_back(kept.neg().add(1));
      sums_.push_back(at::zeros_like(kept));
    }
  }

  // Restores statistics that no pass changes, on which those of later layers depend. Returns
  // whether there were any.
  bool leave_out_frozen(const std::vector<at::Tensor>& starts) {
    std::vector<at::Tensor> moving, initial;
    for (size_t i = 0; i < running_.size(); ++i) {
      if (at::equal(running_[i], starts[i])) {
        running_[i].copy_(initial_[i]);
      } else {
        moving.push_back(running_[i]);
        initial.push_back(initial_[i]);
      }
    }
    const bool has_left_out = moving.size() < running_.size();
    running_ = std::move(moving);
    initial_ = std::move(initial);
    return has_left_out;
  }

  void forward_from_zero(const data::Batch& batch, int64_t step) {
    std::vector<at::Tensor> zeros;
    for (const at::Tensor& tensor : running_) zeros.push_back(at::zeros_like(tensor));
    forward_from(zeros, batch, step);
  }

  void forward_from(const std::vector<at::Tensor>& starts, const data::Batch& batch, int64_t step) {
    for (size_t i = 0; i < running_.size(); ++i) running_[i].copy_(starts[i]);
    seed_step(config_.seed, step, config_.device);
    const at::Tensor seed_and_step =
        at::tensor({static_cast<int64_t>(config_.seed), step}, at::kLong).to(config_.device);
    const model::functional::DropoutScope draws(seed_and_step);
    const precision::AutocastGuard autocast(config_.precision, config_.device.type());
    passes_.begin();
    model_.forward(batch.by_role());
  }

  model::Model& model_;
  std::vector<at::Tensor> running_, initial_, sums_, shares_;
  const StatisticsConfig& config_;
  InferencePasses passes_;
  double samples_ = 0;
};

}  // namespace

bool recompute_statistics(model::Model& model, const data::Samples& samples,
                          const StatisticsConfig& config, const StopRequest& stop) {
  std::vector<at::Tensor> running;
  NamedTensors statistics, counters;
  for (const NamedTensor& buffer : model.buffers()) {
    if (is_statistic(buffer.name)) {
      running.push_back(buffer.tensor);
      statistics.push_back(buffer);
    } else if (!buffer.tensor.is_floating_point()) {
      counters.push_back(buffer);  // Batch counters, which must not change.
    }
  }
  if (running.empty()) return true;
  const at::NoGradGuard no_gradients;
  const TensorSnapshot statistics_before(statistics), counters_before(counters);
  data::LoaderConfig one_epoch = config.loader;
  one_epoch.one_epoch = true;
  data::DeviceLoader loader(samples, one_epoch, {.seed = static_cast<int64_t>(config.seed)},
                            config.device);
  model.set_training(true);
  Means means(model, std::move(running), config);
  int64_t step = 0;
  while (const auto batch = loader.next(&stop)) {
    if (batch->size() > 0) means.add(*batch, step++);
    note_progress();
  }
  means.finish();
  const bool done = !stop.requested() && !means.is_empty();
  done ? means.put_means() : statistics_before.restore();
  counters_before.restore();
  return !stop.requested();
}

}  // namespace gallop::train

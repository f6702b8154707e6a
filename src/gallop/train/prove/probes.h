#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/train/prove/block_outputs.h"

namespace gallop::train {

/// A model that keeps the outputs of a training step, one for each forward pass. In a compiled step
/// they are copied by the graph.
class ProbedModel final : public model::Model {
 public:
  /// `model` must outlive it.
  explicit ProbedModel(model::Model& model) : model_(model) {}

  /// A copy of Output::x of the last forward pass number `call` in a step, from 0, whose input had
  /// these sizes; undefined if there was none.
  at::Tensor output(size_t call, at::IntArrayRef input_sizes) const;
  /// Copies of the outputs of the model's blocks of layers in that pass; empty without
  /// probe_blocks().
  NamedTensors activations(size_t call, at::IntArrayRef input_sizes) const;
  /// Starts to copy the outputs of blocks, too; replaces the model's block hooks during its
  /// lifetime.
  void probe_blocks() { blocks_.emplace(model_); }
  /// Begins a step.
  void restart() { calls_ = 0; }

  at::Tensor forward(const at::Tensor& input) override { return model_.forward(input); }
  model::Output forward_to_head(const at::Tensor& input) override;
  at::Tensor forward(const NamedTensors& batch) override { return model_.forward(batch); }
  model::Output forward_to_head(const NamedTensors& batch) override;
  NamedTensors parameters() const override { return model_.parameters(); }
  NamedTensors buffers() const override { return model_.buffers(); }
  NamedTensors statistics() const override { return model_.statistics(); }
  bool has_auxiliary_loss() const override { return model_.has_auxiliary_loss(); }
  int64_t statistics_size() const override { return model_.statistics_size(); }
  void update_statistics(const at::Tensor& statistics) override {
    model_.update_statistics(statistics);
  }
  std::string statistics_report() override { return model_.statistics_report(); }
  int64_t blocks() const override { return model_.blocks(); }
  void recompute(const std::vector<bool>& blocks) override { model_.recompute(blocks); }
  int64_t fp8_layers() const override { return model_.fp8_layers(); }
  void set_training(bool training) override { model_.set_training(training); }
  bool training() const override { return model_.training(); }
  void to(at::Device device, bool channels_last) override { model_.to(device, channels_last); }
  int64_t fixed_batch() const override { return model_.fixed_batch(); }
  std::string draws_from_generator() const override { return model_.draws_from_generator(); }

 private:
  /// What a forward pass computes.
  struct Pass {
    at::Tensor output;
    NamedTensors activations;
  };
  void keep(const at::Tensor& input, const at::Tensor& output);

  model::Model& model_;
  std::optional<BlockOutputs> blocks_;
  std::map<std::pair<size_t, std::vector<int64_t>>, Pass> kept_;
  size_t calls_ = 0;  // Forward passes of this step.
};

/// An optimizer that keeps the gradients that it applies.
class ProbedOptimizer final : public optim::Optimizer {
 public:
  /// All must outlive it.
  ProbedOptimizer(optim::Optimizer& optimizer, const NamedTensors& parameters, ProbedModel& model);

  /// Copies of the gradients of the last step, scaled as they are applied; undefined for parameters
  /// without one.
  NamedTensors gradients() const;

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const optim::ScheduledOptions& scheduled) override;
  bool can_schedule(optim::ScheduledOption option) const override {
    return optimizer_.can_schedule(option);
  }
  NamedTensors state() const override { return optimizer_.state(); }
  void use_averaged_weights(bool averaged) override { optimizer_.use_averaged_weights(averaged); }
  optim::Averaging averaging() const override { return optimizer_.averaging(); }
  double base_lr() const override { return optimizer_.base_lr(); }

 private:
  optim::Optimizer& optimizer_;
  NamedTensors parameters_;
  ProbedModel& model_;
  std::vector<at::Tensor> kept_;
  at::Tensor divisor_;  // Scalar by which they are divided.
  std::vector<bool> has_gradient_;
};

}  // namespace gallop::train

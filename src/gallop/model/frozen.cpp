#include "gallop/model/frozen.h"

#include <algorithm>
#include <utility>

#include "gallop/base/text.h"
#include "gallop/config/option_error.h"
#include "gallop/tensor/block_hooks.h"
#include "gallop/tensor/tensor_group.h"

namespace gallop::model {

namespace {

constexpr const char* kOption = "train.freeze";

class FrozenModel final : public Model {
 public:
  FrozenModel(std::unique_ptr<Model> model, NamedTensors trained, NamedTensors frozen)
      : model_(std::move(model)), trained_(std::move(trained)), frozen_(std::move(frozen)) {}

  at::Tensor forward(const at::Tensor& input) override { return model_->forward(input); }
  Output forward_to_head(const at::Tensor& input) override {
    return model_->forward_to_head(input);
  }
  at::Tensor forward(const NamedTensors& batch) override { return model_->forward(batch); }
  Output forward_to_head(const NamedTensors& batch) override {
    return model_->forward_to_head(batch);
  }

  bool takes_any_size() const override { return model_->takes_any_size(); }
  bool takes_packed_rows() const override { return model_->takes_packed_rows(); }
  int64_t images_to_initialize() const override { return model_->images_to_initialize(); }
  void initialize_from(const at::Tensor& images) override { model_->initialize_from(images); }

  NamedTensors parameters() const override { return trained_; }
  NamedTensors buffers() const override {
    NamedTensors all = model_->buffers();
    all.insert(all.end(), frozen_.begin(), frozen_.end());
    return all;
  }
  NamedTensors statistics() const override { return model_->statistics(); }
  bool has_auxiliary_loss() const override { return model_->has_auxiliary_loss(); }
  int64_t statistics_size() const override { return model_->statistics_size(); }
  void update_statistics(const at::Tensor& statistics) override {
    model_->update_statistics(statistics);
  }
  std::string statistics_report() override { return model_->statistics_report(); }

  int64_t blocks() const override { return model_->blocks(); }
  void recompute(const std::vector<bool>& blocks) override { model_->recompute(blocks); }
  std::vector<std::vector<std::string>> block_parameters() const override {
    return model_->block_parameters();
  }
  void set_block_hooks(BlockHooks* hooks) override { model_->set_block_hooks(hooks); }
  void divide_tokens(const TensorGroup& group, ContextMethod method) override {
    model_->divide_tokens(group, method);
  }
  ParallelizedModel divide_experts(const TensorGroup& group) override {
    return model_->divide_experts(group);
  }
  ParallelizedModel parallelize(const TensorGroup& group) override {
    return model_->parallelize(group);
  }
  BlockSequence block_sequence() const override { return model_->block_sequence(); }
  Output forward_blocks(const NamedTensors& batch, const std::vector<at::Tensor>& passed,
                        int64_t begin, int64_t end) override {
    return model_->forward_blocks(batch, passed, begin, end);
  }
  int64_t fp8_layers() const override { return model_->fp8_layers(); }

  void set_training(bool training) override { model_->set_training(training); }
  bool training() const override { return model_->training(); }
  void to(at::Device device, bool channels_last) override { model_->to(device, channels_last); }

  int64_t fixed_batch() const override { return model_->fixed_batch(); }
  std::string draws_from_generator() const override { return model_->draws_from_generator(); }
  std::vector<std::string> files() const override { return model_->files(); }
  void save_definition(const std::string& run) const override { model_->save_definition(run); }
  std::vector<std::string> notes() const override { return model_->notes(); }

 private:
  std::unique_ptr<Model> model_;
  NamedTensors trained_, frozen_;
};

}  // namespace

std::unique_ptr<Model> freeze(std::unique_ptr<Model> model,
                              const std::vector<std::string>& patterns) {
  NamedTensors trained, frozen;
  const NamedTensors all = model->parameters();
  for (const std::string& pattern : patterns) {
    const bool is_used = std::any_of(all.begin(), all.end(), [&](const NamedTensor& one) {
      return matches_pattern(one.name, pattern);
    });
    if (!is_used) throw config::OptionError(kOption, no_parameter_named(pattern, all));
  }
  for (const NamedTensor& one : all) {
    (matches_any(one.name, patterns) ? frozen : trained).push_back(one);
  }
  if (trained.empty()) {
    throw config::OptionError(kOption, "freezes all parameters, so nothing is left to train");
  }
  for (const NamedTensor& one : frozen) one.tensor.set_requires_grad(false);
  return std::make_unique<FrozenModel>(std::move(model), std::move(trained), std::move(frozen));
}

}  // namespace gallop::model

#include "gallop/model/network.h"

#include <algorithm>
#include <map>

#include "gallop/base/error.h"
#include "gallop/model/layers.h"
#include "gallop/model/torch_module_model.h"

namespace gallop::model {

namespace {

// A vector may be read in the next block, as the bias of a residual branch is, and is small.
std::vector<std::vector<std::string>> names_in_blocks(
    const NamedTensors& parameters, const std::vector<std::shared_ptr<torch::nn::Module>>& blocks) {
  std::map<const at::TensorImpl*, int> readers;
  for (const auto& block : blocks) {
    for (const at::Tensor& one : block->parameters()) readers[one.unsafeGetTensorImpl()] += 1;
  }
  std::map<const at::TensorImpl*, std::string> names;
  for (const auto& [name, tensor] : parameters) names.emplace(tensor.unsafeGetTensorImpl(), name);
  std::vector<std::vector<std::string>> all;
  for (const auto& block : blocks) {
    auto& of_block = all.emplace_back();
    for (const at::Tensor& one : block->parameters()) {
      const at::TensorImpl* const tensor = one.unsafeGetTensorImpl();
      if (one.dim() > 1 && readers[tensor] == 1 && names.contains(tensor)) {
        of_block.push_back(names[tensor]);
      }
    }
  }
  return all;
}

[[noreturn]] void fail_to_parallelize() {
  throw UsageError(
      "parallel.name=tensor divides attention heads and feed-forward layers among processes, which "
      "only 'gpt', 'vit' and exported programs support; use one of them, or parallel.name=zero-2");
}

[[noreturn]] void fail_to_divide_experts() {
  throw UsageError(
      "parallel.name=expert divides experts among processes, and only the model 'gpt' with "
      "model.num_experts has experts; use it, or another strategy");
}

[[noreturn]] void fail_to_divide_tokens() {
  throw UsageError(
      "parallel.name=context divides the tokens of sequences among processes, which only the model "
      "'gpt' supports; use it, or parallel.name=ddp or zero-3");
}

class NetworkModel final : public TorchModuleModel {
 public:
  explicit NetworkModel(std::shared_ptr<Network> network)
      : TorchModuleModel(network), network_(std::move(network)) {}

  using Model::forward;
  using Model::forward_to_head;
  at::Tensor forward(const at::Tensor& input) override {
    return network_->forward(in_format(input));
  }
  Output forward_to_head(const at::Tensor& input) override {
    return network_->forward_to_head(in_format(input));
  }
  at::Tensor forward(const NamedTensors& batch) override {
    return position_ids_of(batch) != nullptr ? forward_to_head(batch).logits()
                                             : forward(batch.front().tensor);
  }
  Output forward_to_head(const NamedTensors& batch) override {
    const at::Tensor* const position_ids = position_ids_of(batch);
    if (position_ids == nullptr) return forward_to_head(batch.front().tensor);
    return network_->forward_packed(batch.front().tensor, *position_ids);
  }
  bool takes_any_size() const override { return network_->takes_any_size(); }
  bool takes_packed_rows() const override { return network_->takes_packed_rows(); }

  int64_t images_to_initialize() const override { return network_->images_to_initialize(); }
  void initialize_from(const at::Tensor& images) override { network_->initialize_from(images); }

  NamedTensors statistics() const override {
    return statistics_size() > 0 ? NamedTensors() : TorchModuleModel::statistics();
  }
  bool has_auxiliary_loss() const override { return network_->has_auxiliary_loss(); }
  int64_t statistics_size() const override { return network_->statistics_size(); }
  void update_statistics(const at::Tensor& statistics) override {
    network_->update_statistics(statistics);
  }
  std::string statistics_report() override { return network_->statistics_report(); }

  int64_t blocks() const override { return network_->blocks(); }
  void recompute(const std::vector<bool>& blocks) override {
    if (static_cast<int64_t>(blocks.size()) != network_->blocks()) {
      throw InternalError("recompute: another number of flags than of blocks");
    }
    network_->recompute(blocks);
  }

  std::vector<std::vector<std::string>> block_parameters() const override {
    return names_in_blocks(parameters(), network_->block_modules());
  }
  void set_block_hooks(BlockHooks* hooks) override { network_->set_block_hooks(hooks); }
  BlockSequence block_sequence() const override {
    const std::vector<std::string> modules = network_->cut_modules();
    BlockSequence sequence{.tensors = std::vector<std::vector<std::string>>(modules.size()),
                           .tied = network_->tied_parameters()};
    if (modules.empty()) return sequence;
    for (const NamedTensors& list : {parameters(), buffers()}) {
      size_t block = 0;
      bool has_begun = false;
      for (const auto& [name, tensor] : list) {
        const auto found = std::find_if(modules.begin(), modules.end(), [&](const auto& path) {
          return name.starts_with(path + ".");
        });
        if (found != modules.end()) {
          block = static_cast<size_t>(found - modules.begin());
          has_begun = true;
        } else if (has_begun) {
          block = modules.size() - 1;
        }
        sequence.tensors[block].push_back(name);
      }
    }
    return sequence;
  }
  Output forward_blocks(const NamedTensors& batch, const std::vector<at::Tensor>& passed,
                        int64_t begin, int64_t end) override {
    if (begin > 0) network_->begin_pass(batch.front().tensor);
    const at::Tensor input = begin == 0 ? in_format(batch.front().tensor) : passed.front();
    const at::Tensor* const position_ids = position_ids_of(batch);
    Output output = position_ids == nullptr
                        ? network_->forward_blocks(input, begin, end)
                        : network_->forward_packed_blocks(input, *position_ids, begin, end);
    if (static_cast<size_t>(end) == network_->cut_modules().size()) return output;
    return {.passed_on = {output.x}};
  }

  ParallelizedModel parallelize(const TensorGroup& group) override {
    if (!group.tp_plan().empty()) {
      throw UsageError(
          "parallel.tp_plan names the layers of exported programs; 'gpt' and 'vit' have a plan of "
          "their own: omit it");
    }
    const auto parallel = std::make_shared<TensorParallel>(group);
    network_->parallelize(parallel);
    return parallel->result(parameters());
  }

  ParallelizedModel divide_experts(const TensorGroup& group) override {
    const auto parallel = std::make_shared<TensorParallel>(group);
    network_->divide_experts(parallel);
    return parallel->result(parameters());
  }

  void divide_tokens(const TensorGroup& group, ContextMethod method) override {
    network_->divide_tokens(std::make_shared<ContextParallel>(group, method));
  }

 private:
  // Null unless rows may contain several texts.
  const at::Tensor* position_ids_of(const NamedTensors& batch) const {
    return takes_packed_rows() ? find_tensor(batch, kPositionIds) : nullptr;
  }

  std::shared_ptr<Network> network_;
};

}  // namespace

ParallelizedModel Model::parallelize(const TensorGroup& /*group*/) { fail_to_parallelize(); }

void Model::divide_tokens(const TensorGroup& /*group*/, ContextMethod /*method*/) {
  fail_to_divide_tokens();
}

ParallelizedModel Model::divide_experts(const TensorGroup& /*group*/) { fail_to_divide_experts(); }

void Network::divide_experts(const std::shared_ptr<TensorParallel>& /*parallel*/) {
  fail_to_divide_experts();
}

void Network::divide_tokens(const std::shared_ptr<const ContextParallel>& /*context*/) {
  fail_to_divide_tokens();
}

void Network::parallelize(const std::shared_ptr<TensorParallel>& /*parallel*/) {
  fail_to_parallelize();
}

Output Model::forward_blocks(const NamedTensors& /*batch*/,
                             const std::vector<at::Tensor>& /*passed*/, int64_t /*begin*/,
                             int64_t /*end*/) {
  throw InternalError("model: its forward pass cannot be cut");
}

Output Network::forward_blocks(const at::Tensor& /*x*/, int64_t /*begin*/, int64_t /*end*/) {
  throw InternalError("network: its forward pass cannot be cut");
}

Output Network::forward_packed_blocks(const at::Tensor& /*x*/, const at::Tensor& /*position_ids*/,
                                      int64_t /*begin*/, int64_t /*end*/) {
  throw InternalError("network: its forward pass over packed rows cannot be cut");
}

std::vector<std::string> numbered(const std::string& prefix, size_t count) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < count; ++i) paths.push_back(prefix + std::to_string(i));
  return paths;
}

Output Network::forward_packed(const at::Tensor& /*x*/, const at::Tensor& /*position_ids*/) {
  throw InternalError("this model does not support rows of several texts");
}

std::unique_ptr<Model> make_model(std::shared_ptr<Network> network) {
  return std::make_unique<NetworkModel>(std::move(network));
}

void require(bool condition, const std::string& message) {
  if (!condition) throw UsageError(message);
}

void require_no_categories(const Task& task, const std::string& model) {
  require(task.categories.empty(),
          "model '" + model +
              "' reads numbers, but the categories of the data are indices; set "
              "data.encoding=one-hot, or use model 'tabular-mlp'");
}

void require_one_output(const Task& task, const std::string& model) {
  require(!task.sequences,
          "model '" + model +
              "' has one output for a sample, but the task needs a sequence of outputs, which are "
              "aligned with the targets; use model 'layers', such as "
              "examples/models/sequence-recognition.yaml");
  require(task.views == 1,
          "model '" + model +
              "' has an output for each class or number, but the task needs an embedding of each "
              "of the " +
              std::to_string(task.views) +
              " views of a sample; use model 'layers', such as examples/models/siamese.yaml");
}

void require_size(const at::Tensor& images, int64_t height, int64_t width,
                  const std::string& model) {
  require(images.size(2) == height && images.size(3) == width,
          model + ": was built for images of " + std::to_string(height) + "x" +
              std::to_string(width) + ", but got " + std::to_string(images.size(2)) + "x" +
              std::to_string(images.size(3)));
}

void require_stochastic_depth(double last, int64_t blocks, const std::string& model) {
  require(last == 0 || blocks > 1,
          model +
              ": stochastic_depth rises from 0 in the first block to its value in the last, but "
              "there is one block; set it to 0");
}

void require_images(const Task& task, const std::string& model) {
  require(task.kind == Task::Kind::kImages,
          "model '" + model + "' takes images, but the data are " +
              (task.kind != Task::Kind::kText ? "numbers; use model 'mlp'"
               : task.is_per_element()        ? "text; use model 'gpt'"
                                              : "texts; use model 'layers'"));
  require(!task.is_per_element(),
          "model '" + model +
              "' has one output for an image, but the task needs one for each pixel; use model "
              "'layers', such as the U-Net in examples/models/unet.yaml");
  require_one_output(task, model);
  require(task.channels > 0 && task.height > 0 && task.width > 0,
          "model '" + model + "' needs the size of one image, but got " +
              std::to_string(task.channels) + "x" + std::to_string(task.height) + "x" +
              std::to_string(task.width));
  require(task.classes > 0, "model '" + model + "' needs at least one class");
}

void require_text(const Task& task, const std::string& model) {
  require(task.kind == Task::Kind::kText,
          "model '" + model + "' takes text, but the data are " +
              (task.kind == Task::Kind::kImages ? "images; use 'resnet', 'vit' or 'mlp'"
                                                : "numbers; use model 'mlp'"));
  require(task.is_per_element(),
          "model '" + model +
              "' has an output for each token, but the task needs one for a text; use model "
              "'layers'");
  require(task.context > 0 && task.classes > 0,
          "model '" + model + "' needs a context and a vocabulary of at least 1, but got " +
              std::to_string(task.context) + " and " + std::to_string(task.classes));
}

}  // namespace gallop::model

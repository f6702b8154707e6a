#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "gallop/model/model.h"
#include "gallop/tensor/block_hooks.h"

namespace gallop::model {

/// The defined tensors of what blocks pass on.
inline std::vector<at::Tensor> tensors_of(const at::Tensor& x) { return {x}; }

/// A tree of layers with one input and one output.
class Network : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) = 0;
  virtual Output forward_to_head(const at::Tensor& x) { return {forward(x)}; }
  /// See Model::takes_packed_rows(); forward_packed() is called for batches with "position_ids".
  virtual bool takes_packed_rows() const { return false; }
  virtual Output forward_packed(const at::Tensor& x, const at::Tensor& position_ids);
  /// See Model.
  virtual bool takes_any_size() const { return false; }
  /// See Model.
  virtual int64_t images_to_initialize() const { return 0; }
  virtual void initialize_from(const at::Tensor& /*images*/) {}

  /// See Model.
  virtual int64_t blocks() const { return 0; }
  /// The paths of the modules of block_sequence(), such as "transformer.h.0": what is registered
  /// before the first belongs to it, and what is registered behind the last to that one.
  virtual std::vector<std::string> cut_modules() const { return {}; }
  virtual std::vector<std::string> tied_parameters() const { return {}; }
  /// See Model; the blocks of a network pass on Output::x alone.
  virtual Output forward_blocks(const at::Tensor& x, int64_t begin, int64_t end);
  /// Precedes forward_blocks() for later blocks than the first: `input` is that of the whole model.
  virtual void begin_pass(const at::Tensor& /*input*/) {}
  /// Is called for batches with "position_ids".
  virtual Output forward_packed_blocks(const at::Tensor& x, const at::Tensor& position_ids,
                                       int64_t begin, int64_t end);
  /// Divides the layers; see Model.
  virtual void parallelize(const std::shared_ptr<TensorParallel>& parallel);
  /// Divides the tokens; see Model.
  virtual void divide_tokens(const std::shared_ptr<const ContextParallel>& context);
  /// Divides the experts; see Model.
  virtual void divide_experts(const std::shared_ptr<TensorParallel>& parallel);
  void recompute(std::vector<bool> blocks) { recomputed_ = std::move(blocks); }
  /// The layers of each block; see Model::block_parameters().
  virtual std::vector<std::shared_ptr<torch::nn::Module>> block_modules() const { return {}; }
  void set_block_hooks(BlockHooks* hooks) { hooks_ = hooks; }
  /// See Model. With a size, update_statistics() alone changes buffers.
  virtual bool has_auxiliary_loss() const { return false; }
  virtual int64_t statistics_size() const { return 0; }
  virtual void update_statistics(const at::Tensor& /*statistics*/) {}
  virtual std::string statistics_report() { return {}; }

 protected:
  bool recomputes(size_t block) const { return block < recomputed_.size() && recomputed_[block]; }

  /// Computes a block from what the one before it passes on.
  template <typename Input, typename Run>
  auto run_block(size_t block, const Input& input, const Run& run) const {
    if (hooks_ == nullptr) return run(input);
    hooks_->before_forward(block, tensors_of(input).front());
    auto output = run(input);
    hooks_->after_forward(block, tensors_of(output));
    return output;
  }

 private:
  std::vector<bool> recomputed_;
  BlockHooks* hooks_ = nullptr;
};

/// The paths "PREFIX0", "PREFIX1", ... of so many modules.
std::vector<std::string> numbered(const std::string& prefix, size_t count);

/// Wraps a tree of layers as a model.
std::unique_ptr<Model> make_model(std::shared_ptr<Network> network);

/// Throw UsageError if `task` is not of this kind or lacks a size; `model` is named in the message.
/// Images must have one output each, text one output per token.
void require_images(const Task& task, const std::string& model);
void require_text(const Task& task, const std::string& model);
/// Throws UsageError if outputs are sequences, or if samples have several views, each with an
/// embedding.
void require_one_output(const Task& task, const std::string& model);
/// Throws UsageError if the data have categories as indices, which the model does not read.
void require_no_categories(const Task& task, const std::string& model);
/// Throws UsageError if images [N, C, H, W] do not have the size that `model` was built for.
void require_size(const at::Tensor& images, int64_t height, int64_t width,
                  const std::string& model);
/// Throws UsageError if stochastic depth with drop probability `last` is requested for a model with
/// only one block.
void require_stochastic_depth(double last, int64_t blocks, const std::string& model);
/// Throws UsageError with `message` unless `condition` holds.
void require(bool condition, const std::string& message);

}  // namespace gallop::model

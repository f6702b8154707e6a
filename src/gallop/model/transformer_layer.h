#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gallop/model/attention.h"
#include "gallop/model/experts.h"
#include "gallop/model/feed_forward.h"

namespace gallop::model {

/// Pre-norm transformer layer: attention and feed-forward, each after a norm and with a residual
/// (Xiong et al., "On layer normalization in the transformer architecture", 2020), on [B, T, C].
class TransformerLayer final : public torch::nn::Module {
 public:
  struct Options {
    Norm::Options norm;
    SelfAttention::Options attention;
    FeedForward::Options feed_forward;
    const char* norm1_name = "";
    const char* norm2_name = "";
    double stochastic_depth = 0;  ///< Drop probability of each branch per sample.
    ExpertsConfig experts{};
  };
  struct Output {
    Stream stream_BTC;
    Routing routing{};  ///< With experts, in training.
  };
  TransformerLayer(Initializer& initializer, const Options& options);
  /// `position_ids_BT`: see SelfAttention::Mask.
  Output forward(const Stream& stream_BTC, const at::Tensor& position_ids_BT = {});
  /// Like forward(), but saves only its input for the backward pass (activation checkpointing).
  Output recomputed(const Stream& stream_BTC, const at::Tensor& position_ids_BT = {});

  /// Divides heads and inner channels among processes.
  void parallelize(const std::shared_ptr<TensorParallel>& parallel);
  /// Is called for this process's tokens.
  void divide_tokens(const std::shared_ptr<const ContextParallel>& context);
  /// Leaves this process a part of the experts, if there are some.
  void divide_experts(const std::shared_ptr<TensorParallel>& parallel);

  /// Null without experts.
  const std::shared_ptr<MixtureOfExperts>& experts() const { return experts_; }

 private:
  Branch dropped(const Branch& branch) const;

  std::shared_ptr<Norm> norm1_;
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<Norm> norm2_;
  std::shared_ptr<FeedForward> feed_forward_;  // Null with experts.
  std::shared_ptr<MixtureOfExperts> experts_;
  double stochastic_depth_;
};

/// What depends on the layer's parameters by a gradient.
std::vector<at::Tensor> tensors_of(const TransformerLayer::Output& output);

/// Throws UsageError if `width` is not divisible by `heads`; `model` is named in the
/// message.
void require_heads(int64_t width, int64_t heads, const std::string& model);

}  // namespace gallop::model

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/model/experts_config.h"
#include "gallop/model/feed_forward.h"
#include "gallop/model/functional/experts.h"
#include "gallop/model/tensor_parallel.h"

namespace gallop::model {

/// What the router of a layer has done with the tokens of a batch, in training.
struct Routing {
  at::Tensor loss{};        ///< Its auxiliary losses, summed over the tokens; undefined: none.
  at::Tensor statistics{};  ///< fp64 [E + 1]: tokens sent to each expert, and dropped ones.
};

/// Those of all layers.
class Routings {
 public:
  void add(const Routing& of_layer);
  /// The mean of the layers' losses; undefined without any.
  at::Tensor mean_loss() const;
  /// Those of one layer after the other; undefined without any.
  at::Tensor all_statistics() const;

 private:
  std::vector<at::Tensor> losses_, statistics_;
};

/// A feed-forward layer of several networks, of which a router chooses `top_k` for each token
/// (Shazeer et al., "Outrageously large neural networks: the sparsely-gated mixture-of-experts
/// layer", 2017). The result is their weighted sum. The router computes in fp32: p = softmax(W x),
/// and the weights are the largest p, divided by their sum if top_k > 1, as in Mixtral (Jiang et
/// al., 2024). With load_balancing
///  - "aux-loss": the loss is E sum_e f_e P_e, where f_e is the number of tokens sent to expert e
///    over that of all tokens, and P_e the mean of p_e (Fedus et al., "Switch Transformers", 2022),
///    both over all tokens of forward(), as in Mixtral;
///  - "seq-aux-loss": the mean of this over the rows of a batch, each by itself (DeepSeek-AI,
///    "DeepSeek-V3", 2024), which does not depend on how a batch is divided;
///  - "bias": experts are chosen by p + b; after each step b_e grows by bias_update_rate if expert
///    e got fewer tokens of the whole batch than the mean, and falls if more (Wang et al.,
///    "Auxiliary-loss-free load balancing strategy for mixture-of-experts", 2024).
/// The z-loss is the mean of logsumexp(W x)^2 (Zoph et al., "ST-MoE", 2022).
class MixtureOfExperts final : public torch::nn::Module {
 public:
  struct Options {
    ExpertsConfig config;
    FeedForward::Options expert;  ///< Without biases and without inner_dropout.
  };
  MixtureOfExperts(Initializer& initializer, const Options& options);

  /// Leaves this process an equal part of the experts. From then on forward() is called by all
  /// processes of the group together, each for its own tokens.
  void divide_experts(const std::shared_ptr<TensorParallel>& parallel);

  /// In training an expert computes at most ceil(T k / E * capacity_factor) of the T tokens of a
  /// call, the first ones; others get nothing from it.
  Branch forward(const at::Tensor& x_BTC, Routing& routing);

  int64_t statistics_size() const { return options_.config.num_experts + 1; }
  /// Ends a step; Routing::statistics, summed over its whole batch.
  void update_statistics(const at::Tensor& statistics);

  /// Tokens sent to each expert since the beginning of the training, int64 [E], and dropped ones.
  const at::Tensor& tokens_per_expert() const { return tokens_per_expert_; }
  const at::Tensor& dropped_tokens() const { return dropped_tokens_; }

 private:
  at::Tensor router_logits(const at::Tensor& x) const;
  at::Tensor compute(const at::Tensor& rows, const functional::ExpertOrder& order) const;
  at::Tensor expand(const at::Tensor& rows, const functional::ExpertOrder& order) const;
  int64_t capacity(int64_t tokens) const;
  at::Tensor router_loss(const at::Tensor& logits_NE, const at::Tensor& p_NE,
                         const at::Tensor& experts_Nk, int64_t rows) const;

  Options options_;
  std::shared_ptr<Linear> router_;
  std::shared_ptr<TensorParallel> parallel_;  // Null if all experts are here.
  at::Tensor expand_;                         // [E, inner, C], with a gate [E, 2 inner, C].
  at::Tensor contract_;                       // [E, C, inner]
  at::Tensor expert_bias_;
  at::Tensor tokens_per_expert_;
  at::Tensor dropped_tokens_;
};

/// How unequal the experts' work is and what has been dropped since the last call, in words.
class ExpertsReport {
 public:
  std::string next(const std::vector<std::shared_ptr<MixtureOfExperts>>& layers);

 private:
  std::vector<at::Tensor> before_;  // State of each layer before, fp64 [E + 1].
};

}  // namespace gallop::model

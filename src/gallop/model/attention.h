#pragma once

#include "gallop/model/layers.h"

namespace gallop::model {

/// Multi-head self-attention (Vaswani et al. 2017) on [B, T, C] with input and output projections.
class SelfAttention : public torch::nn::Module {
 public:
  struct Options {
    int64_t width = 0;
    int64_t heads = 0;
    bool causal = false;
    bool bias = true;
    bool rotary = false;           ///< Rotary position embedding (RoPE, Su et al. 2021).
    double dropout = 0;            ///< Probability, for attention weights and output.
    const char* input_name = "";   ///< Name of the projection to queries, keys and values.
    const char* output_name = "";  ///< Name of the output projection.
    InitScheme input_init{};
    InitScheme output_init{};
  };
  SelfAttention(Initializer& initializer, const Options& options);
  /// What tokens can be attended to; undefined: all.
  struct Mask {
    at::Tensor is_token_BT{};      ///< bool: false for padding, which nothing attends to.
    at::Tensor position_ids_BT{};  ///< int64: as in kernel::AttentionOptions; replaces the above.
  };
  Branch forward(const at::Tensor& x_BTC, const Mask& mask);
  Branch forward(const at::Tensor& x_BTC) { return forward(x_BTC, Mask()); }
  /// Divides its heads among processes.
  void parallelize(const std::shared_ptr<TensorParallel>& parallel);
  /// Is called for this process's tokens.
  void divide_tokens(const std::shared_ptr<const ContextParallel>& context);

 private:
  at::Tensor attend(const at::Tensor& qkv_BT3HD, const Mask& mask);
  // Attention of this process's tokens to those of all processes.
  at::Tensor attend_in_ring(const at::Tensor& qkv_BT3HD, const Mask& mask);
  at::Tensor rotation(int64_t tokens, int64_t head);

  std::shared_ptr<const TensorParallel> parallel_;  // Null if it is whole.
  std::shared_ptr<const ContextParallel> context_;  // Null if it sees all tokens.
  Options options_;
  at::Tensor rotation_;  ///< Cached for the longest sequence so far.
  std::shared_ptr<Linear> input_;
  std::shared_ptr<Linear> output_;
};

}  // namespace gallop::model

#include "gallop/model/transformer_layer.h"

namespace gallop::model {

TransformerLayer::TransformerLayer(Initializer& initializer, const Options& options)
    : norm1_(
          register_module(options.norm1_name, std::make_shared<Norm>(initializer, options.norm))),
      attention_(
          register_module("attn", std::make_shared<SelfAttention>(initializer, options.attention))),
      norm2_(
          register_module(options.norm2_name, std::make_shared<Norm>(initializer, options.norm))),
      feed_forward_(register_module(
          "mlp", std::make_shared<FeedForward>(initializer, options.feed_forward))) {}

at::Tensor TransformerLayer::forward(const at::Tensor& x_BTC) {
  const auto middle = x_BTC + attention_->forward(norm1_->forward(x_BTC));
  return middle + feed_forward_->forward(norm2_->forward(middle));
}

}  // namespace gallop::model

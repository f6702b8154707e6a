#include "gallop/model/feed_forward.h"

#include <ATen/ops/dropout.h>

namespace gallop::model {

FeedForward::FeedForward(Initializer& initializer, const Options& options) : options_(options) {
  expand_ = register_module(
      options.expand_name,
      std::make_shared<Linear>(initializer, Linear::Options{.in = options.width,
                                                            .out = options.inner,
                                                            .bias = options.bias,
                                                            .init = options.expand_init}));
  contract_ = register_module(
      options.contract_name,
      std::make_shared<Linear>(initializer, Linear::Options{.in = options.inner,
                                                            .out = options.width,
                                                            .bias = options.bias,
                                                            .init = options.contract_init}));
}

Branch FeedForward::forward(const at::Tensor& x_BTC) const {
  using kernel::Activation;
  auto inner =
      expand_->forward(x_BTC, options_.gelu_by_tanh ? Activation::kGeluTanh : Activation::kGelu);
  inner = at::dropout(inner, options_.inner_dropout, is_training());
  return contract_->branch(inner, is_training() ? options_.dropout : 0);
}

}  // namespace gallop::model

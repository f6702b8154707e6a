#include "gallop/model/feed_forward.h"

#include "gallop/base/error.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/swiglu.h"

namespace gallop::model {

FeedForward::FeedForward(Initializer& initializer, const Options& options) : options_(options) {
  const int64_t expanded =
      options.activation == Activation::kSwiglu ? 2 * options.inner : options.inner;
  expand_ = register_module(
      options.expand_name,
      std::make_shared<Linear>(initializer, Linear::Options{.in = options.width,
                                                            .out = expanded,
                                                            .bias = options.bias,
                                                            .init = options.expand_init}));
  contract_ = register_module(
      options.contract_name,
      std::make_shared<Linear>(initializer, Linear::Options{.in = options.inner,
                                                            .out = options.width,
                                                            .bias = options.bias,
                                                            .init = options.contract_init}));
}

at::Tensor FeedForward::expand(const at::Tensor& x_BTC) const {
  switch (options_.activation) {
    case Activation::kGelu: return expand_->forward(x_BTC, kernel::Activation::kGelu);
    case Activation::kGeluTanh: return expand_->forward(x_BTC, kernel::Activation::kGeluTanh);
    case Activation::kSwiglu: return functional::swiglu(expand_->forward(x_BTC));
  }
  throw InternalError("a feed-forward part without an activation");
}

Branch FeedForward::forward(const at::Tensor& x_BTC) const {
  auto inner = expand(x_BTC);
  inner = functional::dropout(inner, options_.inner_dropout, is_training(), part_of(inner));
  return contract_->branch(inner, is_training() ? options_.dropout : 0, context_.get());
}

kernel::DropoutPart FeedForward::part_of(const at::Tensor& inner) const {
  if (parallel_) return parallel_->part(inner, 2, options_.inner);
  return context_ ? context_->part_of_tokens(inner) : kernel::DropoutPart();
}

void FeedForward::parallelize(const std::shared_ptr<TensorParallel>& parallel) {
  parallel->require_divisible(options_.inner, "inner channels of feed-forward layers", "the width");
  parallel_ = parallel;
  const bool is_gated = options_.activation == Activation::kSwiglu;
  expand_->parallelize(parallel, ParallelStyle::kColwise, /*groups=*/is_gated ? 2 : 1);
  contract_->parallelize(parallel, ParallelStyle::kRowwise);
}

}  // namespace gallop::model

#include "gallop/model/transformer_layer.h"

#include "gallop/model/functional/recompute.h"
#include "gallop/model/functional/stochastic_depth.h"
#include "gallop/model/network.h"

namespace gallop::model {

TransformerLayer::TransformerLayer(Initializer& initializer, const Options& options)
    : norm1_(
          register_module(options.norm1_name, std::make_shared<Norm>(initializer, options.norm))),
      attention_(
          register_module("attn", std::make_shared<SelfAttention>(initializer, options.attention))),
      norm2_(
          register_module(options.norm2_name, std::make_shared<Norm>(initializer, options.norm))),
      stochastic_depth_(options.stochastic_depth) {
  if (options.experts.num_experts > 0) {
    experts_ = register_module(
        "mlp", std::make_shared<MixtureOfExperts>(
                   initializer, MixtureOfExperts::Options{.config = options.experts,
                                                          .expert = options.feed_forward}));
  } else {
    feed_forward_ =
        register_module("mlp", std::make_shared<FeedForward>(initializer, options.feed_forward));
  }
}

TransformerLayer::Output TransformerLayer::forward(const Stream& stream_BTC,
                                                   const at::Tensor& position_ids_BT) {
  const auto start = norm1_->forward(stream_BTC);
  const Branch attended =
      dropped(attention_->forward(start.y, {.position_ids_BT = position_ids_BT}));
  const auto middle = norm2_->forward(Stream{start.sum, attended.value, attended.bias});
  Output output;
  const Branch fed = dropped(experts_ ? experts_->forward(middle.y, output.routing)
                                      : feed_forward_->forward(middle.y));
  output.stream_BTC = {middle.sum, fed.value, fed.bias};
  return output;
}

void TransformerLayer::parallelize(const std::shared_ptr<TensorParallel>& parallel) {
  require(experts_ == nullptr,
          "parallel.name=tensor does not divide experts (model.num_experts); use "
          "parallel.name=expert");
  norm1_->parallelize(*parallel);
  attention_->parallelize(parallel);
  norm2_->parallelize(*parallel);
  feed_forward_->parallelize(parallel);
}

void TransformerLayer::divide_tokens(const std::shared_ptr<const ContextParallel>& context) {
  require(experts_ == nullptr,
          "parallel.name=context does not divide the tokens of experts (model.num_experts); use "
          "parallel.name=expert");
  attention_->divide_tokens(context);
  feed_forward_->divide_tokens(context);
}

void TransformerLayer::divide_experts(const std::shared_ptr<TensorParallel>& parallel) {
  if (experts_) experts_->divide_experts(parallel);
}

// A sample that skips a branch also skips its bias.
Branch TransformerLayer::dropped(const Branch& branch) const {
  if (!is_training() || stochastic_depth_ == 0) return branch;
  const auto& [value, bias] = branch;
  const auto whole = bias.defined() ? value.add(bias.to(value.scalar_type())) : value;
  return {functional::drop_samples(whole, stochastic_depth_, /*training=*/true)};
}

TransformerLayer::Output TransformerLayer::recomputed(const Stream& stream_BTC,
                                                      const at::Tensor& position_ids_BT) {
  using Tensors = std::vector<at::Tensor>;
  Tensors inputs = {stream_BTC.x};
  for (const at::Tensor& more : {stream_BTC.residual, stream_BTC.bias}) {
    if (more.defined()) inputs.push_back(more);
  }
  // A bias that leaves the layer is its parameter, not a result, and statistics have no gradient.
  at::Tensor bias, statistics;
  const auto part = [this, position_ids_BT, has_residual = stream_BTC.residual.defined(), &bias,
                     &statistics](const Tensors& in) {
    Stream stream{in[0]};
    if (has_residual) stream.residual = in[1];
    if (in.size() > (has_residual ? 2 : 1)) stream.bias = in.back();
    const Output out = forward(stream, position_ids_BT);
    if (!functional::is_recomputing()) {
      bias = out.stream_BTC.bias;
      statistics = out.routing.statistics;
    }
    Tensors results{out.stream_BTC.x, out.stream_BTC.residual};
    if (out.routing.loss.defined()) results.push_back(out.routing.loss);
    return results;
  };
  const auto out = functional::recompute(part, inputs, parameters());
  return {.stream_BTC = {out[0], out[1], bias},
          .routing = {.loss = out.size() > 2 ? out[2] : at::Tensor(), .statistics = statistics}};
}

std::vector<at::Tensor> tensors_of(const TransformerLayer::Output& output) {
  std::vector<at::Tensor> all = functional::tensors_of(output.stream_BTC);
  if (output.routing.loss.defined()) all.push_back(output.routing.loss);
  return all;
}

void require_heads(int64_t width, int64_t heads, const std::string& model) {
  require(width % heads == 0, model + ": " + std::to_string(heads) +
                                  " heads do not divide the width " + std::to_string(width));
}

}  // namespace gallop::model

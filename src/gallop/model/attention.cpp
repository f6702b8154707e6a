// Shapes: B batch, T tokens, C width, H heads, D head width (C / H).
#include "gallop/model/attention.h"

#include <cmath>
#include <functional>
#include <limits>

#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include "gallop/model/functional/attention.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/ring_attention.h"

namespace gallop::model {

namespace {

// Rotates pairs (i, i + D/2) by position / 10000^(2i/D), as in GPT-NeoX and Llama. Positions are
// less than `tokens`, and count up from 0 if they are not given.
at::Tensor rotated(const at::Tensor& x_BHTD, const at::Tensor& position_ids_BT, int64_t tokens) {
  const int64_t half = x_BHTD.size(3) / 2;
  const auto options = x_BHTD.options().dtype(at::kFloat);
  const auto rates =
      at::arange(half, options).mul_(-std::log(10000.0) / static_cast<double>(half)).exp_();
  auto angles = at::outer(at::arange(tokens, options), rates);
  if (position_ids_BT.defined()) {
    angles = angles.index_select(0, position_ids_BT.flatten())
                 .view({position_ids_BT.size(0), 1, x_BHTD.size(2), half});
  }
  const auto cosine = angles.cos().to(x_BHTD.scalar_type());
  const auto sine = angles.sin().to(x_BHTD.scalar_type());
  const auto first = x_BHTD.narrow(3, 0, half);
  const auto second = x_BHTD.narrow(3, half, half);
  return at::cat({first * cosine - second * sine, second * cosine + first * sine}, 3);
}

// Attention by plain GEMMs, which saves the weights [B * H, T, T] for backward.
// `place`: of the weights [B, H, T, T] among those of all heads.
at::Tensor by_products(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const at::Tensor& added, double dropout, bool causal,
                       const std::function<kernel::DropoutPart(const at::Tensor&)>& place) {
  const int64_t tokens = query.size(2), head = query.size(3);
  const auto flat = [](const at::Tensor& x_BHTD) { return x_BHTD.flatten(0, 1); };
  auto weights =
      at::bmm(flat(query) * (1 / std::sqrt(static_cast<double>(head))), flat(key).transpose(1, 2));
  if (causal) {
    weights.add_(
        at::full({tokens, tokens}, -std::numeric_limits<double>::infinity(), query.options())
            .triu_(1));
  }
  if (added.defined()) {
    weights = weights.unflatten(0, {query.size(0), query.size(1)}).add(added).flatten(0, 1);
  }
  weights = functional::dropout(at::softmax(weights, -1), dropout, /*training=*/true,
                                place(weights.unflatten(0, {query.size(0), query.size(1)})));
  return at::bmm(weights, flat(value)).view(query.sizes());
}

// The additive attention mask, which makes weights at padding negligible. It is finite, so that a
// row without any token has no NaN.
at::Tensor added_for(const at::Tensor& is_token_BT, at::ScalarType type) {
  constexpr double kExcluded = -1e4;
  return is_token_BT.logical_not().to(type).mul(kExcluded).unsqueeze(1).unsqueeze(1);
}

// The additive attention mask [B, 1, T, T] of rows that contain several documents. Every token
// attends at least to itself.
at::Tensor added_for_documents(const at::Tensor& position_ids_BT, bool causal,
                               at::ScalarType type) {
  const int64_t tokens = position_ids_BT.size(1);
  const auto begins_BT = at::arange(tokens, position_ids_BT.options()).sub(position_ids_BT);
  auto hidden_BTT = begins_BT.unsqueeze(2).ne(begins_BT.unsqueeze(1));
  if (causal) {
    hidden_BTT = hidden_BTT.logical_or(at::ones({tokens, tokens}, hidden_BTT.options()).triu_(1));
  }
  return at::zeros(hidden_BTT.sizes(), hidden_BTT.options().dtype(type))
      .masked_fill(hidden_BTT, -std::numeric_limits<double>::infinity())
      .unsqueeze(1);
}

// LibTorch 2.11's fused kernel for the CPU uses tiles too small for its bf16 GEMMs. Forward and
// backward on one core with AMX, ms, GEMMs vs fused: 16x8x128x32 7.5 and 38, 16x4x512x64 70 and 96,
// 4x12x1024x64 242 and 213; in fp32 15 and 14, 172 and 149, 514 and 339.
bool products_are_faster(const at::Tensor& query) {
  return query.is_cpu() && query.scalar_type() == at::kBFloat16 && query.size(2) <= 512;
}

}  // namespace

SelfAttention::SelfAttention(Initializer& initializer, const Options& options) : options_(options) {
  const int64_t width = options.width;
  input_ = register_module(
      options.input_name,
      std::make_shared<Linear>(
          initializer,
          Linear::Options{
              .in = width, .out = 3 * width, .bias = options.bias, .init = options.input_init}));
  output_ = register_module(
      options.output_name,
      std::make_shared<Linear>(
          initializer,
          Linear::Options{
              .in = width, .out = width, .bias = options.bias, .init = options.output_init}));
}

Branch SelfAttention::forward(const at::Tensor& x_BTC, const Mask& mask) {
  const int64_t head = options_.width / options_.heads;
  const auto qkv_BTC = input_->forward(x_BTC);
  const int64_t batch = qkv_BTC.size(0), tokens = qkv_BTC.size(1);
  // Without -1, which is ambiguous for a batch of 0.
  const at::Tensor qkv_BT3HD = qkv_BTC.view({batch, tokens, 3, qkv_BTC.size(2) / (3 * head), head});
  at::Tensor y_BTHD;
  if (!context_) {
    y_BTHD = attend(qkv_BT3HD, mask);
  } else if (context_->method() == ContextMethod::kRing) {
    y_BTHD = attend_in_ring(qkv_BT3HD, mask);
  } else {
    y_BTHD = context_->to_tokens(attend(context_->to_heads(qkv_BT3HD), mask), options_.heads);
  }
  return output_->branch(y_BTHD.flatten(2), is_training() ? options_.dropout : 0, context_.get());
}

void SelfAttention::parallelize(const std::shared_ptr<TensorParallel>& parallel) {
  parallel->require_divisible(options_.heads, "attention heads", "model.heads");
  parallel_ = parallel;
  input_->parallelize(parallel, ParallelStyle::kColwise, /*groups=*/3);
  output_->parallelize(parallel, ParallelStyle::kRowwise);
}

void SelfAttention::divide_tokens(const std::shared_ptr<const ContextParallel>& context) {
  context->require_divisible(options_.heads);
  context_ = context;
}

at::Tensor SelfAttention::attend(const at::Tensor& qkv_BT3HD, const Mask& mask) {
  const double dropout = is_training() ? options_.dropout : 0.0;
  const int64_t tokens = qkv_BT3HD.size(1), head = qkv_BT3HD.size(4);
  const at::Tensor& position_ids_BT = mask.position_ids_BT;
  const bool masks_padding = mask.is_token_BT.defined() && !position_ids_BT.defined();
  if (dropout == 0 && !masks_padding && kernel::kernels_enabled() &&
      kernel::takes_attention(qkv_BT3HD, options_.causal)) {
    kernel::AttentionOptions options{.causal = options_.causal,
                                     .scale = 1 / std::sqrt(static_cast<double>(head)),
                                     .position_ids_BT = position_ids_BT};
    if (options_.rotary) options.rotation_TD = rotation(tokens, head);
    return functional::attention(qkv_BT3HD, options);
  }
  const auto parts = qkv_BT3HD.permute({2, 0, 3, 1, 4}).unbind(0);
  auto query = parts[0], key = parts[1];
  if (options_.rotary) {
    query = rotated(query, position_ids_BT, tokens);
    key = rotated(key, position_ids_BT, tokens);
  }
  at::Tensor added;
  bool causal = options_.causal;
  if (position_ids_BT.defined()) {
    added = added_for_documents(position_ids_BT, causal, query.scalar_type());
    causal = false;  // It is part of the mask.
  } else if (masks_padding) {
    added = added_for(mask.is_token_BT, query.scalar_type());
  }
  const auto place = [this](const at::Tensor& weights_BHTT) {
    if (parallel_) return parallel_->part(weights_BHTT, 1, options_.heads);
    return context_ ? context_->part_of_heads(weights_BHTT, options_.heads) : kernel::DropoutPart();
  };
  const auto y_BHTD =
      (dropout > 0 && (query.is_cpu() || functional::dropout_varies())) ||
              products_are_faster(query)
          ? by_products(query, key, parts[2], added, dropout, causal, place)
      : added.defined()
          ? at::scaled_dot_product_attention(query, key, parts[2], added, dropout)
          : at::scaled_dot_product_attention(query, key, parts[2], {}, dropout, causal);
  return y_BHTD.transpose(1, 2);
}

at::Tensor SelfAttention::attend_in_ring(const at::Tensor& qkv_BT3HD, const Mask& mask) {
  const int64_t tokens = context_->tokens();
  const auto parts = qkv_BT3HD.permute({2, 0, 3, 1, 4}).unbind(0);
  at::Tensor query = parts[0], key = parts[1];
  if (options_.rotary) {
    const at::Tensor position_ids_BT = context_->own_tokens(
        mask.position_ids_BT.defined() ? mask.position_ids_BT
                                       : at::arange(tokens, at::kLong).unsqueeze(0),
        1);
    query = rotated(query, position_ids_BT, tokens);
    key = rotated(key, position_ids_BT, tokens);
  }
  const at::Tensor y_BHTD =
      functional::ring_attention(query, key, parts[2],
                                 {.tokens = tokens,
                                  .causal = options_.causal,
                                  .scale = 1 / std::sqrt(static_cast<double>(qkv_BT3HD.size(4))),
                                  .dropout = is_training() ? options_.dropout : 0,
                                  .position_ids_BT = mask.position_ids_BT},
                                 context_->group());
  return y_BHTD.transpose(1, 2);
}

at::Tensor SelfAttention::rotation(int64_t tokens, int64_t head) {
  if (!rotation_.defined() || rotation_.size(0) < tokens) {
    rotation_ = kernel::rotation(tokens, head);
  }
  return rotation_.narrow(0, 0, tokens);
}

}  // namespace gallop::model

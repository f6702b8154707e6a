#pragma once

#include "gallop/model/attention.h"
#include "gallop/model/feed_forward.h"

namespace gallop::model {

/// Attention and a feed-forward part, each behind a norm and added to what came in (Xiong et al.,
/// "On layer normalization in the transformer architecture", 2020), for [B, T, C].
class TransformerLayer final : public torch::nn::Module {
 public:
  struct Options {
    Norm::Options norm;
    SelfAttention::Options attention;
    FeedForward::Options feed_forward;
    const char* norm1_name = "";
    const char* norm2_name = "";
    double stochastic_depth = 0;  ///< Chance that a sample skips either part.
  };
  TransformerLayer(Initializer& initializer, const Options& options);
  Stream forward(const Stream& stream_BTC);
  /// The same without anything kept for the backward pass but what comes in.
  Stream recomputed(const Stream& stream_BTC);

 private:
  Branch dropped(const Branch& branch) const;

  std::shared_ptr<Norm> norm1_;
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<Norm> norm2_;
  std::shared_ptr<FeedForward> feed_forward_;
  double stochastic_depth_;
};

/// Throws UsageError where heads of equal width do not fill the width; `model` is named in the
/// message.
void require_heads(int64_t width, int64_t heads, const std::string& model);

}  // namespace gallop::model

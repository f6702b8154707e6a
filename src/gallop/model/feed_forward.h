#pragma once

#include "gallop/model/layers.h"

namespace gallop::model {

/// Two linear layers with GELU (Hendrycks and Gimpel 2016) between them, for each token of [B, T,
/// C].
class FeedForward : public torch::nn::Module {
 public:
  struct Options {
    int64_t width;
    int64_t inner;
    bool bias = true;
    bool gelu_by_tanh = false;  ///< The approximation that GPT-2 was trained with.
    double inner_dropout = 0;   ///< Behind the activation.
    double dropout = 0;         ///< Of the output.
    const char* expand_name;
    const char* contract_name;
    InitScheme expand_init{};
    InitScheme contract_init{};
  };
  FeedForward(Initializer& initializer, const Options& options);
  Branch forward(const at::Tensor& x_BTC) const;

 private:
  Options options_;
  std::shared_ptr<Linear> expand_;
  std::shared_ptr<Linear> contract_;
};

}  // namespace gallop::model

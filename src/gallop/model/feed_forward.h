#pragma once

#include "gallop/model/layers.h"

namespace gallop::model {

/// Two linear layers with an activation in between, applied to each token of [B, T, C].
class FeedForward : public torch::nn::Module {
 public:
  enum class Activation {
    kGelu,      ///< Hendrycks and Gimpel 2016.
    kGeluTanh,  ///< The tanh approximation, used by GPT-2.
    kSwiglu,    ///< Shazeer 2020; the first layer has twice the inner width, the gate first.
  };
  struct Options {
    int64_t width;
    int64_t inner;
    bool bias = true;
    Activation activation = Activation::kGelu;
    double inner_dropout = 0;  ///< After the activation.
    double dropout = 0;        ///< On the output.
    const char* expand_name;
    const char* contract_name;
    InitScheme expand_init{};
    InitScheme contract_init{};
  };
  FeedForward(Initializer& initializer, const Options& options);
  Branch forward(const at::Tensor& x_BTC) const;
  /// Divides its inner channels among processes.
  void parallelize(const std::shared_ptr<TensorParallel>& parallel);
  /// Is called for this process's tokens.
  void divide_tokens(std::shared_ptr<const ContextParallel> context) {
    context_ = std::move(context);
  }

 private:
  kernel::DropoutPart part_of(const at::Tensor& inner) const;
  at::Tensor expand(const at::Tensor& x_BTC) const;

  std::shared_ptr<const TensorParallel> parallel_;  // Null if it is whole.
  std::shared_ptr<const ContextParallel> context_;  // Null if it sees all tokens.
  Options options_;
  std::shared_ptr<Linear> expand_;
  std::shared_ptr<Linear> contract_;
};

}  // namespace gallop::model

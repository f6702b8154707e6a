#pragma once

#include "gallop/model/layers.h"

namespace gallop::model {

/// Two linear layers with an activation between them, for each token of [B, T, C].
class FeedForward : public torch::nn::Module {
 public:
  enum class Activation {
    kGelu,      ///< Hendrycks and Gimpel 2016.
    kGeluTanh,  ///< Its approximation that GPT-2 was trained with.
    kSwiglu,    ///< Shazeer 2020; the first layer makes twice the inner width, a gate first.
  };
  struct Options {
    int64_t width;
    int64_t inner;
    bool bias = true;
    Activation activation = Activation::kGelu;
    double inner_dropout = 0;  ///< Behind the activation.
    double dropout = 0;        ///< Of the output.
    const char* expand_name;
    const char* contract_name;
    InitScheme expand_init{};
    InitScheme contract_init{};
  };
  FeedForward(Initializer& initializer, const Options& options);
  Branch forward(const at::Tensor& x_BTC) const;

 private:
  at::Tensor expand(const at::Tensor& x_BTC) const;

  Options options_;
  std::shared_ptr<Linear> expand_;
  std::shared_ptr<Linear> contract_;
};

}  // namespace gallop::model

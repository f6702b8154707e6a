#pragma once

#include <string>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "gallop/model/model.h"

namespace gallop::model {

/// The distribution of the weights of one kind of layer, and of its biases.
struct InitScheme {
  enum class Kind {
    kDefault,        ///< PyTorch's default: uniform within 1 / sqrt(fan_in).
    kXavierUniform,  ///< Glorot and Bengio 2010.
    kXavierNormal,
    kKaimingUniform,  ///< He et al. 2015, for ReLU; fan_out of convolutions, fan_in of linear
                      ///< layers.
    kKaimingNormal,
    kDirac,            ///< As the default, but the first filters pass one input channel each, as
                       ///< torch.nn.init.dirac_.
    kNormal,           ///< Mean 0 and `std`, as in GPT-2; biases are 0.
    kTruncatedNormal,  ///< The same within -2 and 2, as in timm's ViT; biases are 0.
  };
  Kind kind = Kind::kDefault;
  double std = 0;
};

/// The choices of the options `conv_init` and `linear_init`.
const std::vector<std::string>& init_names();
/// Parses one of init_names(). Throws UsageError for anything else.
InitScheme parse_init(const std::string& name);

/// Creates parameters from one random generator. The same seed and order of calls give the same
/// weights on every machine.
class Initializer {
 public:
  explicit Initializer(InitialWeights weights);

  /// Creates a weight [out, in] or [out, in, kh, kw].
  at::Tensor weight(at::IntArrayRef sizes, const InitScheme& scheme);
  /// Creates a bias [size] for a layer with this fan_in.
  at::Tensor bias(int64_t size, int64_t fan_in, const InitScheme& scheme);
  at::Tensor normal(at::IntArrayRef sizes, double std);
  /// A normal distribution of numbers within -`bound` and `bound`.
  at::Tensor truncated_normal(at::IntArrayRef sizes, double std, double bound);
  at::Tensor constant(at::IntArrayRef sizes, double value);
  /// Creates a zero-dimensional int64 tensor with value 0.
  at::Tensor counter();

 private:
  at::Tensor empty(at::IntArrayRef sizes) const;
  at::Tensor uniform(at::IntArrayRef sizes, double bound);
  at::Tensor dirac(at::IntArrayRef sizes, double bound);

  bool sizes_only_;
  at::Generator generator_;
};

}  // namespace gallop::model

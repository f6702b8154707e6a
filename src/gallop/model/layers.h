#pragma once

#include <cstdint>
#include <string>

#include <torch/nn/module.h>

#include "gallop/model/context_parallel.h"
#include "gallop/model/functional/batch_norm.h"
#include "gallop/model/functional/layer_norm.h"
#include "gallop/model/functional/linear.h"
#include "gallop/model/initializer.h"
#include "gallop/model/tensor_parallel.h"

// Layers with PyTorch's numerics and parameter names, each calling the fastest operator. Only for
// sources of model/: this is the only header that includes torch/nn.
namespace gallop::model {

/// A term added to a residual stream: value [..., C] + bias [C]; the bias may be undefined.
struct Branch {
  at::Tensor value;
  at::Tensor bias{};
};

/// y = x W^T + b over the last dimension; weight [out, in], bias [out]. In fp8 steps, see
/// can_be_fp8().
class Linear : public torch::nn::Module {
 public:
  struct Options {
    int64_t in = 0;
    int64_t out = 0;
    bool bias = true;
    InitScheme init{};
    bool is_head = false;  ///< Whether this is the last layer, which returns the logits.
  };
  Linear(Initializer& initializer, const Options& options);
  at::Tensor forward(const at::Tensor& x) const;
  /// act(y)
  at::Tensor forward(const at::Tensor& x, kernel::Activation activation) const;
  /// Returns dropout(y). Without dropout the bias is kept separate, for a norm to add in its pass.
  /// `context`: how the tokens of x are divided; null if they are all.
  Branch branch(const at::Tensor& x, double dropout,
                const ContextParallel* context = nullptr) const;
  const at::Tensor& weight() const { return weight_; }
  /// Divides the layer among processes. A kRowwise one is only called by branch(). `groups`: see
  /// TensorParallel::shard().
  void parallelize(const std::shared_ptr<TensorParallel>& parallel, ParallelStyle style,
                   int64_t groups = 1);
  /// Whether its GEMMs run in fp8 in fp8 steps: both sizes are multiples of 16, and it is not the
  /// head, whose errors no later layer can compensate.
  bool can_be_fp8() const;

 private:
  at::Tensor product(const at::Tensor& x, const at::Tensor& bias,
                     std::optional<kernel::Activation> activation = {}) const;

  at::Tensor entered(const at::Tensor& x) const { return parallel_ ? parallel_->enter(x) : x; }

  at::Tensor weight_;
  at::Tensor bias_;
  bool is_head_;
  std::shared_ptr<const TensorParallel> parallel_;  // Null if it is whole.
};

/// 2-D convolution of [N, C, H, W] with a square kernel.
class Conv2d : public torch::nn::Module {
 public:
  struct Options {
    int64_t in = 0;
    int64_t out = 0;
    int64_t window = 0;
    int64_t stride = 1;
    int64_t padding = 0;
    bool bias = false;
    InitScheme init{};
  };
  Conv2d(Initializer& initializer, const Options& options);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  int64_t stride_;
  int64_t padding_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Batch normalization of [N, C, H, W] (Ioffe and Szegedy 2015). Training uses the batch's
/// statistics and updates the running statistics with `momentum`.
class BatchNorm2d : public torch::nn::Module {
 public:
  struct Options {
    int64_t channels = 0;
    double momentum = 0.1;
    double initial_weight = 1;
    bool trains_weight = true;
  };
  BatchNorm2d(Initializer& initializer, const Options& options);
  at::Tensor forward(const at::Tensor& x);
  /// relu(forward(x) + residual) in one operator; the residual is optional.
  at::Tensor forward_relu(const at::Tensor& x, const at::Tensor& residual = {});
  /// Like forward_relu(), with two results for two consumers; see batch_norm_fork().
  functional::Fork fork_relu(const at::Tensor& x, const at::Tensor& residual = {});

 private:
  functional::BatchNormOptions start(bool relu);
  kernel::BatchNormParameters state() const;

  kernel::BatchNormParameters state_;
  at::Tensor num_batches_tracked_;
};

/// A residual stream. Its value is the sum of its terms, which the next norm computes in its pass.
using Stream = functional::Summands;

/// Layer norm (Ba et al. 2016) or RMS norm (Zhang and Sennrich 2019, no bias) over the last
/// dimension.
class Norm : public torch::nn::Module {
 public:
  struct Options {
    int64_t width = 0;
    double eps = 1e-5;
    bool bias = true;
    bool rms = false;
  };
  Norm(Initializer& initializer, const Options& options);
  at::Tensor forward(const at::Tensor& x) const { return forward(Stream{x}).y; }
  functional::NormedSum forward(const Stream& stream) const;
  /// It stays whole.
  void parallelize(TensorParallel& parallel);

 private:
  double eps_;
  bool rms_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Looks up rows of a table [count, width] by int64 indices.
class Embedding : public torch::nn::Module {
 public:
  struct Options {
    int64_t count = 0;
    int64_t width = 0;
    double std = 0;
  };
  Embedding(Initializer& initializer, const Options& options);
  /// Returns [.., T, width]; row t of `positions`, if defined, is added to position t.
  at::Tensor forward(const at::Tensor& indices, const at::Tensor& positions = {}) const;
  const at::Tensor& weight() const { return weight_; }
  /// Divides its rows, the vocabulary, among processes. Outputs are outside of parallel regions.
  void parallelize(const std::shared_ptr<TensorParallel>& parallel);

 private:
  at::Tensor weight_;
  int64_t count_;
  std::shared_ptr<const TensorParallel> parallel_;  // Null if it is whole.
};

}  // namespace gallop::model

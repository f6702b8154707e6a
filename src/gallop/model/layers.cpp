#include "gallop/model/layers.h"

#include "gallop/kernel/isa.h"
#include "gallop/model/functional/activation.h"
#include "gallop/model/functional/conv2d.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/embedding.h"
#include "gallop/model/functional/fp8_linear.h"
#include "gallop/model/functional/recompute.h"
#include "gallop/precision/precision.h"

namespace gallop::model {

Linear::Linear(Initializer& initializer, const Options& options) : is_head_(options.is_head) {
  weight_ =
      register_parameter("weight", initializer.weight({options.out, options.in}, options.init));
  if (options.bias) {
    bias_ = register_parameter("bias", initializer.bias(options.out, options.in, options.init));
  }
}

void Linear::parallelize(const std::shared_ptr<TensorParallel>& parallel, ParallelStyle style,
                         int64_t groups) {
  parallel_ = parallel;
  parallel->shard(weight_, style == ParallelStyle::kColwise ? 0 : 1, groups);
  if (!bias_.defined()) return;
  if (style == ParallelStyle::kColwise) {
    parallel->shard(bias_, 0, groups);
  } else {
    parallel->note_outside(bias_);
  }
}

at::Tensor Linear::forward(const at::Tensor& x) const { return product(entered(x), bias_); }

at::Tensor Linear::forward(const at::Tensor& x, kernel::Activation activation) const {
  return product(entered(x), bias_, activation);
}

Branch Linear::branch(const at::Tensor& x, double dropout, const ContextParallel* context) const {
  if (parallel_) {
    const at::Tensor y = parallel_->leave(product(x, {}));
    if (dropout == 0) return {y, bias_};
    const at::Tensor whole = bias_.defined() ? y.add(bias_.to(y.scalar_type())) : y;
    return {functional::dropout(whole, dropout, /*training=*/true, parallel_->part_outside(whole))};
  }
  // LibTorch's CPU GEMM adds a bias in separate passes; on other devices it is free.
  if (dropout > 0 || !x.is_cpu() || !kernel::kernels_enabled()) {
    const at::Tensor y = forward(x);
    return {functional::dropout(
        y, dropout, /*training=*/true,
        context != nullptr ? context->part_of_tokens(y) : kernel::DropoutPart())};
  }
  return {product(x, {}), bias_};
}

bool Linear::can_be_fp8() const {
  return !is_head_ && functional::takes_fp8_linear(weight_.sizes());
}

at::Tensor Linear::product(const at::Tensor& x, const at::Tensor& bias,
                           std::optional<kernel::Activation> activation) const {
  if (!precision::linear_is_fp8() || !can_be_fp8()) {
    return functional::linear(x, weight_, bias, activation);
  }
  const at::Tensor y = functional::fp8_linear(x, weight_, bias);
  return activation ? functional::activation(*activation, y) : y;
}

Conv2d::Conv2d(Initializer& initializer, const Options& options)
    : stride_(options.stride), padding_(options.padding) {
  const int64_t window = options.window;
  weight_ = register_parameter(
      "weight", initializer.weight({options.out, options.in, window, window}, options.init));
  if (options.bias) {
    const int64_t fan_in = options.in * window * window;
    bias_ = register_parameter("bias", initializer.bias(options.out, fan_in, options.init));
  }
}

at::Tensor Conv2d::forward(const at::Tensor& x) const {
  return functional::conv2d(x, weight_, bias_, stride_, padding_);
}

BatchNorm2d::BatchNorm2d(Initializer& initializer, const Options& options)
    : state_{.momentum = options.momentum} {
  const int64_t channels = options.channels;
  const at::Tensor weight = initializer.constant(channels, options.initial_weight);
  state_.weight = options.trains_weight ? register_parameter("weight", weight)
                                        : register_buffer("weight", weight);
  state_.bias = register_parameter("bias", initializer.constant(channels, 0));
  state_.running_mean = register_buffer("running_mean", initializer.constant(channels, 0));
  state_.running_var = register_buffer("running_var", initializer.constant(channels, 1));
  num_batches_tracked_ = register_buffer("num_batches_tracked", initializer.counter());
}

functional::BatchNormOptions BatchNorm2d::start(bool relu) {
  if (is_training() && !functional::is_recomputing()) num_batches_tracked_.add_(1);
  return {.training = is_training(), .relu = relu};
}

// Recomputation updates copies of the running statistics.
kernel::BatchNormParameters BatchNorm2d::state() const {
  kernel::BatchNormParameters state = state_;
  if (is_training() && functional::is_recomputing()) {
    state.running_mean = state.running_mean.clone();
    state.running_var = state.running_var.clone();
  }
  return state;
}

at::Tensor BatchNorm2d::forward(const at::Tensor& x) {
  return functional::batch_norm(x, {}, state(), start(/*relu=*/false));
}

at::Tensor BatchNorm2d::forward_relu(const at::Tensor& x, const at::Tensor& residual) {
  return functional::batch_norm(x, residual, state(), start(/*relu=*/true));
}

functional::Fork BatchNorm2d::fork_relu(const at::Tensor& x, const at::Tensor& residual) {
  return functional::batch_norm_fork(x, residual, state(), start(/*relu=*/true));
}

Norm::Norm(Initializer& initializer, const Options& options)
    : eps_(options.eps), rms_(options.rms) {
  weight_ = register_parameter("weight", initializer.constant(options.width, 1));
  if (options.bias && !rms_) {
    bias_ = register_parameter("bias", initializer.constant(options.width, 0));
  }
}

void Norm::parallelize(TensorParallel& parallel) {
  parallel.note_outside(weight_);
  parallel.note_outside(bias_);
}

functional::NormedSum Norm::forward(const Stream& stream) const {
  return functional::layer_norm(stream, weight_, bias_, eps_, rms_);
}

Embedding::Embedding(Initializer& initializer, const Options& options) : count_(options.count) {
  weight_ =
      register_parameter("weight", initializer.normal({options.count, options.width}, options.std));
}

void Embedding::parallelize(const std::shared_ptr<TensorParallel>& parallel) {
  parallel_ = parallel;
  parallel->shard(weight_, 0);
}

at::Tensor Embedding::forward(const at::Tensor& indices, const at::Tensor& positions) const {
  if (!parallel_) return functional::embedding(indices, weight_, positions);
  // Other processes have the rows of other indices.
  const functional::TablePart own = functional::part_of_table(
      indices, parallel_->part_of(count_).begin, weight_.size(0), count_, at::kFloat);
  at::Tensor y = parallel_->leave(functional::embedding(own.indices, weight_).mul(own.factors));
  if (!positions.defined()) return y;
  return y.add(
      parallel_->own_tokens(positions.narrow(0, 0, indices.size(-1)), 0).to(y.scalar_type()));
}

}  // namespace gallop::model

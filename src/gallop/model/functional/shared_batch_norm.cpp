#include "gallop/model/functional/shared_batch_norm.h"

#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/base/error.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

thread_local SumOverAll current_sum = nullptr;

void sum_over_all(const at::Tensor& tensor) {
  if (current_sum == nullptr) throw InternalError("shared batch norm: outside of its scope");
  current_sum(tensor);
}

std::vector<int64_t> all_but_channels(const at::Tensor& x) {
  std::vector<int64_t> dims = {0};
  for (int64_t dim = 2; dim < x.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// Views [C] for broadcasting with [N, C, ...].
at::Tensor along(const at::Tensor& channels, const at::Tensor& x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = x.size(1);
  return channels.to(at::kFloat).view(shape);
}

// The statistics of all slices; fp64 [C].
struct Statistics {
  at::Tensor mean, variance;
  at::Tensor count;  ///< fp64 [1], the number of elements per channel.
};

// Sums the values, and the squares around each slice's own mean, so that a mean far from 0 does not
// cancel digits of the variance (Chan, Golub and LeVeque, "Algorithms for computing the sample
// variance", The American Statistician 37, 1983).
Statistics statistics_of(const at::Tensor& x) {
  const auto dims = all_but_channels(x);
  const int64_t channels = x.size(1), own = x.numel() / channels;
  const at::Tensor sum = x.sum(dims, false, at::kDouble);
  const at::Tensor mean = sum.div(static_cast<double>(std::max<int64_t>(own, 1)));
  const at::Tensor rounded = mean.to(at::kFloat);
  const at::Tensor squares = x.sub(along(rounded, x))
                                 .square()
                                 .sum(dims, false, at::kDouble)
                                 .sub(mean.sub(rounded).square().mul(static_cast<double>(own)));
  const at::Tensor sums = at::cat(
      {sum, squares.add(sum.mul(mean)), at::full({1}, static_cast<double>(own), sum.options())});
  sum_over_all(sums);
  const at::Tensor count = sums.slice(0, 2 * channels);
  const at::Tensor all_mean = sums.slice(0, 0, channels).div(count);
  return {.mean = all_mean,
          .variance =
              sums.slice(0, channels, 2 * channels).div(count).sub(all_mean.square()).clamp_min(0),
          .count = count};
}

void move_running(const kernel::BatchNormParameters& parameters, const Statistics& statistics) {
  const double momentum = parameters.momentum;
  const at::Tensor unbiased =
      statistics.variance.mul(statistics.count).div(statistics.count.sub(1).clamp_min(1));
  parameters.running_mean.mul_(1 - momentum).add_(statistics.mean.to(at::kFloat), momentum);
  parameters.running_var.mul_(1 - momentum).add_(unbiased.to(at::kFloat), momentum);
}

class SharedBatchNorm final : public torch::autograd::Function<SharedBatchNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const kernel::BatchNormParameters& parameters) {
    const at::Tensor x = given.to(at::kFloat);
    const Statistics statistics = statistics_of(x);
    move_running(parameters, statistics);
    const at::Tensor inverse = statistics.variance.add(parameters.eps).rsqrt();
    context->save_for_backward({given, weight, statistics.mean, inverse, statistics.count});
    const at::Tensor scale = weight.mul(inverse.to(at::kFloat));
    return x.sub(along(statistics.mean, x))
        .mul(along(scale, x))
        .add(along(bias, x))
        .to(given.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order("batch_norm");
    const auto saved = context->get_saved_variables();
    const at::Tensor x = saved[0].to(at::kFloat), dy = gradients[0].to(at::kFloat);
    const at::Tensor &weight = saved[1], &count = saved[4];
    const auto dims = all_but_channels(x);
    const int64_t channels = x.size(1);
    const at::Tensor normal = x.sub(along(saved[2], x)).mul(along(saved[3], x));
    const at::Tensor bias_sum = dy.sum(dims, false, at::kDouble);
    const at::Tensor weight_sum = dy.mul(normal).sum(dims, false, at::kDouble);
    const at::Tensor sums = at::cat({bias_sum, weight_sum});
    sum_over_all(sums);
    const at::Tensor of_bias = sums.slice(0, 0, channels).div(count);
    const at::Tensor of_weight = sums.slice(0, channels).div(count);
    const at::Tensor dx = dy.sub(along(of_bias, x))
                              .sub(normal.mul(along(of_weight, x)))
                              .mul(along(weight.mul(saved[3].to(at::kFloat)), x));
    return {dx.to(saved[0].scalar_type()), weight_sum.to(at::kFloat), bias_sum.to(at::kFloat),
            at::Tensor()};
  }
};

}  // namespace

SharedBatchNormScope::SharedBatchNormScope(SumOverAll sum_over_all)
    : outer_(std::exchange(current_sum, sum_over_all)) {}

SharedBatchNormScope::~SharedBatchNormScope() { current_sum = outer_; }

bool SharedBatchNormScope::is_there() { return current_sum != nullptr; }

at::Tensor shared_batch_norm(const at::Tensor& x, const kernel::BatchNormParameters& parameters) {
  return SharedBatchNorm::apply(x, parameters.weight, parameters.bias, parameters);
}

}  // namespace gallop::model::functional

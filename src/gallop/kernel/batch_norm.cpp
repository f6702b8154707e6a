#include "gallop/kernel/batch_norm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "gallop/base/error.h"
#include "gallop/kernel/batch_norm_layout.h"
#include "gallop/kernel/cpu/batch_norm.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"

namespace gallop::kernel {

namespace {

at::MemoryFormat format_of(const at::Tensor& x) {
  return x.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

// Constants of the columns, all arrays in one allocation.
class Columns {
 public:
  Columns(const BatchNormLayout& layout, size_t arrays)
      : columns_(layout.columns),
        channels_(layout.channels),
        values_(arrays * static_cast<size_t>(layout.columns)) {}

  void set(size_t array, int64_t channel, double value) {
    float* const to = values_.data() + array * static_cast<size_t>(columns_);
    for (int64_t i = channel; i < columns_; i += channels_) to[i] = static_cast<float>(value);
  }
  const float* at(size_t array) const {
    return values_.data() + array * static_cast<size_t>(columns_);
  }

 private:
  int64_t columns_, channels_;
  std::vector<float> values_;
};

struct Moments {
  double mean, inverse_deviation;
};

// Sets mean, scale and shift so that y = (x - mean) * scale + shift; the rounding error of the mean
// is added to the shift.
void set_channel(Columns& columns, int64_t channel, const Moments& moments, double weight,
                 double bias) {
  const double scale = moments.inverse_deviation * weight;
  const double left = moments.mean - static_cast<double>(static_cast<float>(moments.mean));
  columns.set(0, channel, moments.mean);
  columns.set(1, channel, scale);
  columns.set(2, channel, bias - left * scale);
}

float as_fp32(float x) { return x; }
float as_fp32(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

void move(float& running, double momentum, double value) {
  running = static_cast<float>((1 - momentum) * static_cast<double>(running) + momentum * value);
}

void require_channels(const at::Tensor& tensor, int64_t channels, const char* name) {
  if (tensor.scalar_type() == at::kFloat && tensor.is_contiguous() && tensor.numel() == channels) {
    return;
  }
  throw InternalError(std::string("batch norm: ") + name + " must be fp32 of " +
                      std::to_string(channels) + " numbers in a row");
}

void require_like(const at::Tensor& tensor, const at::Tensor& x, const char* name) {
  if (tensor.sizes() == x.sizes() && tensor.scalar_type() == x.scalar_type()) return;
  throw InternalError(std::string("batch norm: ") + name +
                      " must have the sizes and the dtype of x");
}

void require_taken(const at::Tensor& x) {
  if (takes_batch_norm(x)) return;
  throw InternalError(
      "batch norm: x must be fp32 or bf16 on the CPU, not empty, and [N, C] or [N, C, H, W] in "
      "channels_last");
}

// The derivatives of other activations need the sum, which is not kept.
void require_residual(BatchNormActivation activation) {
  if (activation == BatchNormActivation::kNone || activation == BatchNormActivation::kRelu) return;
  throw InternalError("batch norm: a residual needs ReLU or no activation");
}

template <typename Number>
BatchNormResult forward(const at::Tensor& x, const at::Tensor& residual,
                        const BatchNormParameters& parameters, BatchNormActivation activation,
                        bool keep_positive, Isa isa) {
  const BatchNormKernels<Number> kernels = kernels_for<BatchNormKernels<Number>>(isa);
  const BatchNormLayout layout(x);
  const auto format = format_of(x);
  BatchNormResult result{.y = at::empty_like(x)};
  result.mean = at::empty({layout.channels}, at::kDouble);
  result.inverse_deviation = at::empty({layout.channels}, at::kDouble);
  if (keep_positive) result.positive = at::empty({layout.words()}, at::kShort);
  const auto added = residual.defined() ? residual.contiguous(format) : at::Tensor();
  const BatchNormPart<Number> all{.x = data_of<Number>(x),
                                  .residual = data_of<Number>(added),
                                  .y = data_of<Number>(result.y),
                                  .positive = data_of<uint16_t>(result.positive)};

  Columns origin(layout, 1);
  for (int64_t c = 0; c < layout.channels; ++c) {
    origin.set(0, c, static_cast<double>(as_fp32(all.x[c])));
  }
  const auto sums = sum_parts(layout, [&](int64_t part, float* scratch, double* to) {
    kernels.moments(part_of(all, layout, part), origin.at(0), scratch, to);
  });

  Columns columns(layout, 3);
  const auto n = static_cast<double>(layout.pixels);
  for (int64_t c = 0; c < layout.channels; ++c) {
    const double offset = sums[static_cast<size_t>(c)] / n;
    const double square = sums[static_cast<size_t>(layout.channels + c)] / n;
    const double distance = square - offset * offset;
    const double variance = distance < 0 ? 0 : distance;  // NaN stays NaN.
    const Moments moments{static_cast<double>(origin.at(0)[c]) + offset,
                          1 / std::sqrt(variance + parameters.eps)};
    result.mean.data_ptr<double>()[c] = moments.mean;
    result.inverse_deviation.data_ptr<double>()[c] = moments.inverse_deviation;
    set_channel(columns, c, moments, static_cast<double>(data_of<float>(parameters.weight)[c]),
                static_cast<double>(data_of<float>(parameters.bias)[c]));
    move(data_of<float>(parameters.running_mean)[c], parameters.momentum, moments.mean);
    move(data_of<float>(parameters.running_var)[c], parameters.momentum,
         variance * (n / std::max(n - 1, 1.0)));
  }
  each_part(layout, [&](int64_t part) {
    kernels.apply(part_of(all, layout, part),
                  {.mean = columns.at(0), .scale = columns.at(1), .shift = columns.at(2)},
                  activation);
  });
  return result;
}

ActivationGradient gradient_of(const BatchNormGradientInput& input) {
  switch (input.activation) {
    case BatchNormActivation::kNone: return ActivationGradient::kNone;
    case BatchNormActivation::kRelu:
      return input.positive.defined() ? ActivationGradient::kPositive : ActivationGradient::kRelu;
    case BatchNormActivation::kRelu6: return ActivationGradient::kRelu6;
    case BatchNormActivation::kSilu: return ActivationGradient::kSilu;
    case BatchNormActivation::kHardswish: return ActivationGradient::kHardswish;
  }
  throw InternalError("batch norm: an unknown activation");
}

template <typename Number>
BatchNormGradients backward(const BatchNormGradientInput& input, Isa isa) {
  const BatchNormKernels<Number> kernels = kernels_for<BatchNormKernels<Number>>(isa);
  const BatchNormLayout layout(input.x);
  const auto format = format_of(input.x);
  const auto dy = input.dy.contiguous(format);
  const auto more_dy = input.more_dy.defined() ? input.more_dy.contiguous(format) : at::Tensor();
  ActivationGradient activation = gradient_of(input);

  // Storing g saves the second pass from recomputing it.
  const bool from_g =
      input.wants_residual || more_dy.defined() || activation == ActivationGradient::kPositive;
  BatchNormGradients result;
  const auto g = from_g ? at::empty_like(input.x) : at::Tensor();
  if (input.wants_residual) result.residual = g;
  if (input.wants_x) result.x = from_g && !input.wants_residual ? g : at::empty_like(input.x);
  BatchNormPart<Number> all{.x = data_of<Number>(input.x),
                            .positive = data_of<uint16_t>(input.positive),
                            .dy = data_of<Number>(dy),
                            .more_dy = data_of<Number>(more_dy),
                            .g = data_of<Number>(g),
                            .dx = data_of<Number>(result.x)};

  Columns columns(layout, 6);
  const BatchNormColumns arrays{.mean = columns.at(0),
                                .scale = columns.at(1),
                                .shift = columns.at(2),
                                .keep = columns.at(3),
                                .slope = columns.at(4),
                                .add = columns.at(5)};
  const auto moments = [&](int64_t c) {
    return Moments{input.mean.data_ptr<double>()[c], input.inverse_deviation.data_ptr<double>()[c]};
  };
  for (int64_t c = 0; c < layout.channels; ++c) {
    set_channel(columns, c, moments(c), static_cast<double>(data_of<float>(input.weight)[c]),
                static_cast<double>(data_of<float>(input.bias)[c]));
  }
  const auto sums = sum_parts(layout, [&](int64_t part, float* scratch, double* to) {
    kernels.gradient_sums(part_of(all, layout, part), arrays, activation, scratch, to);
  });

  result.weight = at::empty({layout.channels}, at::kFloat);
  result.bias = at::empty({layout.channels}, at::kFloat);
  const auto n = static_cast<double>(layout.pixels);
  for (int64_t c = 0; c < layout.channels; ++c) {
    const auto [mean, inverse] = moments(c);
    const double left = mean - static_cast<double>(static_cast<float>(mean));
    const double sum = sums[static_cast<size_t>(c)];
    const double product = sums[static_cast<size_t>(layout.channels + c)] - left * sum;
    const double keep = inverse * static_cast<double>(data_of<float>(input.weight)[c]);
    const double slope = -keep * inverse * inverse * product / n;
    columns.set(3, c, keep);
    columns.set(4, c, slope);
    columns.set(5, c, -keep * sum / n - slope * left);
    data_of<float>(result.weight)[c] = static_cast<float>(product * inverse);
    data_of<float>(result.bias)[c] = static_cast<float>(sum);
  }
  if (!input.wants_x) return result;
  if (from_g) {
    all.dy = all.g;
    activation = ActivationGradient::kNone;
  }
  each_part(layout, [&](int64_t part) {
    kernels.gradient(part_of(all, layout, part), arrays, activation);
  });
  return result;
}

}  // namespace

bool takes_batch_norm(const at::Tensor& x) {
  return x.is_cpu() && x.layout() == at::kStrided && x.numel() > 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) &&
         (x.dim() == 2 || x.dim() == 4) && x.is_contiguous(format_of(x));
}

int64_t batch_norm_sign_words(const at::Tensor& x) { return BatchNormLayout(x).words(); }

BatchNormResult batch_norm_by(Isa isa, const at::Tensor& x, const at::Tensor& residual,
                              const BatchNormParameters& parameters, BatchNormActivation activation,
                              bool keep_positive) {
  require_taken(x);
  if (residual.defined()) {
    require_like(residual, x, "the residual");
    require_residual(activation);
  }
  require_channels(parameters.weight, x.size(1), "the weight");
  require_channels(parameters.bias, x.size(1), "the bias");
  require_channels(parameters.running_mean, x.size(1), "the running mean");
  require_channels(parameters.running_var, x.size(1), "the running variance");
  keep_positive = keep_positive && activation == BatchNormActivation::kRelu;
  return x.scalar_type() == at::kFloat
             ? forward<float>(x, residual, parameters, activation, keep_positive, isa)
             : forward<Bf16>(x, residual, parameters, activation, keep_positive, isa);
}

BatchNormGradients batch_norm_backward_by(Isa isa, const BatchNormGradientInput& input) {
  require_taken(input.x);
  require_like(input.dy, input.x, "the gradient");
  if (input.more_dy.defined()) require_like(input.more_dy, input.x, "the second gradient");
  if (input.wants_residual) require_residual(input.activation);
  if (input.wants_residual && input.activation == BatchNormActivation::kRelu &&
      !input.positive.defined()) {
    throw InternalError("batch norm: the forward pass over a residual did not keep its signs");
  }
  return input.x.scalar_type() == at::kFloat ? backward<float>(input, isa)
                                             : backward<Bf16>(input, isa);
}

namespace {

using Optional = std::optional<at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Four forward_on_cpu(const at::Tensor& x, const Optional& residual, const at::Tensor& weight,
                    const at::Tensor& bias, const at::Tensor& running_mean,
                    const at::Tensor& running_var, double momentum, double eps, int64_t activation,
                    bool keep_positive) {
  auto result = batch_norm_by(best_isa(), x, residual.value_or(at::Tensor()),
                              {.weight = weight,
                               .bias = bias,
                               .running_mean = running_mean,
                               .running_var = running_var,
                               .momentum = momentum,
                               .eps = eps},
                              static_cast<BatchNormActivation>(activation), keep_positive);
  return {result.y, result.mean, result.inverse_deviation, result.positive};
}

Four backward_on_cpu(const at::Tensor& dy, const Optional& more_dy, const at::Tensor& x,
                     const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& mean,
                     const at::Tensor& inverse_deviation, const Optional& positive,
                     int64_t activation, bool wants_residual, bool wants_x) {
  auto result = batch_norm_backward_by(best_isa(),
                                       {.dy = dy,
                                        .more_dy = more_dy.value_or(at::Tensor()),
                                        .x = x,
                                        .weight = weight,
                                        .bias = bias,
                                        .mean = mean,
                                        .inverse_deviation = inverse_deviation,
                                        .positive = positive.value_or(at::Tensor()),
                                        .activation = static_cast<BatchNormActivation>(activation),
                                        .wants_residual = wants_residual,
                                        .wants_x = wants_x});
  return {result.x, result.residual, result.weight, result.bias};
}

const auto& forward_operator() {
  static const Operator kForward(
      "batch_norm(Tensor x, Tensor? residual, Tensor weight, Tensor bias, Tensor(a!) running_mean, "
      "Tensor(b!) running_var, float momentum, float eps, int activation, bool keep_positive) -> "
      "(Tensor y, Tensor mean, Tensor inverse_deviation, Tensor positive)",
      forward_on_cpu);
  return kForward;
}

const auto& backward_operator() {
  static const Operator kBackward(
      "batch_norm_backward(Tensor dy, Tensor? more_dy, Tensor x, Tensor weight, Tensor bias, "
      "Tensor mean, Tensor inverse_deviation, Tensor? positive, int activation, bool "
      "wants_residual, "
      "bool wants_x) -> (Tensor x, Tensor residual, Tensor weight, Tensor bias)",
      backward_on_cpu);
  return kBackward;
}

}  // namespace

c10::OperatorHandle batch_norm_operator() { return forward_operator().handle(); }
c10::OperatorHandle batch_norm_backward_operator() { return backward_operator().handle(); }

BatchNormResult batch_norm(const at::Tensor& x, const at::Tensor& residual,
                           const BatchNormParameters& parameters, BatchNormActivation activation,
                           bool keep_positive) {
  auto [y, mean, inverse_deviation, positive] =
      forward_operator()(x, residual, parameters.weight, parameters.bias, parameters.running_mean,
                         parameters.running_var, parameters.momentum, parameters.eps,
                         static_cast<int64_t>(activation), keep_positive);
  return {.y = y, .mean = mean, .inverse_deviation = inverse_deviation, .positive = positive};
}

BatchNormGradients batch_norm_backward(const BatchNormGradientInput& input) {
  auto [x, residual, weight, bias] = backward_operator()(
      input.dy, input.more_dy, input.x, input.weight, input.bias, input.mean,
      input.inverse_deviation, input.positive, static_cast<int64_t>(input.activation),
      input.wants_residual, input.wants_x);
  return {.x = x, .residual = residual, .weight = weight, .bias = bias};
}

}  // namespace gallop::kernel

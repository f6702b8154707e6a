#include "gallop/kernel/depthwise_conv2d.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/depthwise_conv2d.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/gemm.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"

namespace gallop::kernel {

namespace {

constexpr int64_t kLeastChannels = 16;
constexpr int64_t kTaskElements = 32768;  // Elements of a task of a thread.
constexpr int64_t kBandBytes = 64 << 10;  // Rows of dy that are read again for each window row.
constexpr int64_t kMostParts = 32;        // Parts of a sum over the batch.

bool is_image(const at::Tensor& x) {
  return x.is_cpu() && x.layout() == at::kStrided && x.dim() == 4 && x.numel() > 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

// Whether there is a result.
bool fits(int64_t size, int64_t filter, const DepthwiseWindow& window) {
  return size + 2 * window.padding > window.dilation * (filter - 1);
}

int64_t out_size(int64_t size, int64_t filter, const DepthwiseWindow& window) {
  return (size + 2 * window.padding - window.dilation * (filter - 1) - 1) / window.stride + 1;
}

DepthwiseSizes sizes_of(int64_t channels, int64_t height, int64_t width,
                        const DepthwiseWindow& window) {
  return {.channels = channels,
          .height = height,
          .width = width,
          .out_height = out_size(height, window.height, window),
          .out_width = out_size(width, window.width, window),
          .window_height = window.height,
          .window_width = window.width,
          .stride = window.stride,
          .padding = window.padding,
          .dilation = window.dilation};
}

void require(bool holds, const char* what) {
  if (!holds) throw InternalError(std::string("depthwise convolution: ") + what);
}

// [window height * window width, C] in fp32.
at::Tensor packed(const at::Tensor& weight, int64_t channels, const DepthwiseWindow& window) {
  const int64_t taps = window.height * window.width;
  require(weight.dim() == 4 && weight.numel() == channels * taps && weight.size(0) == channels,
          "the weight must be [C, 1, height, width]");
  return weight.reshape({channels, taps}).t().to(at::kFloat).contiguous();
}

template <typename Number>
at::Tensor data_gradient(Isa isa, const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                         int64_t width, const DepthwiseWindow& window) {
  const auto kernels = kernels_for<DepthwiseKernels<Number>>(isa);
  const DepthwiseSizes sizes = sizes_of(dy.size(1), height, width, window);
  require(dy.size(2) == sizes.out_height && dy.size(3) == sizes.out_width,
          "the gradient has other sizes than the result");
  const at::Tensor filters = packed(weight, sizes.channels, window);
  at::Tensor dx = at::empty({dy.size(0), dy.size(1), height, width},
                            dy.options().memory_format(at::MemoryFormat::ChannelsLast));
  const int64_t rows = dx.size(0) * dx.size(2);
  const int64_t grain = std::max<int64_t>(1, kTaskElements * rows / dx.numel());
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    kernels.data_gradient(sizes, data_of<const Number>(dy), data_of<const float>(filters),
                          data_of<Number>(dx), begin, end);
  });
  return dx;
}

// The sum of `parts` rows of `count` numbers each, in fp64.
std::vector<float> sum_of_parts(const std::vector<float>& parts, int64_t count) {
  std::vector<float> sums;
  sums.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (auto at = static_cast<size_t>(i); at < parts.size(); at += static_cast<size_t>(count)) {
      sum += static_cast<double>(parts[at]);
    }
    sums.push_back(static_cast<float>(sum));
  }
  return sums;
}

template <typename Number>
std::pair<at::Tensor, at::Tensor> weight_gradient(Isa isa, const at::Tensor& dy,
                                                  const at::Tensor& x,
                                                  const DepthwiseWindow& window, bool wants_bias) {
  const auto kernels = kernels_for<DepthwiseKernels<Number>>(isa);
  const DepthwiseSizes sizes = sizes_of(x.size(1), x.size(2), x.size(3), window);
  require(dy.size(2) == sizes.out_height && dy.size(3) == sizes.out_width,
          "the gradient has other sizes than the result");
  const int64_t channels = sizes.channels, taps = window.height * window.width;
  const int64_t rows = dy.size(0) * sizes.out_height;
  const int64_t row_bytes = sizes.out_width * channels * static_cast<int64_t>(sizeof(Number));
  const int64_t band = std::clamp<int64_t>(kBandBytes / row_bytes, 1, rows);
  const int64_t bands = parts_of(rows, band), part_bands = parts_of(bands, kMostParts);
  const int64_t parts = parts_of(bands, part_bands), count = (taps + 1) * channels;
  std::vector<float> sums(static_cast<size_t>(parts * count));
  at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      float* const weight = sums.data() + part * count;
      float* const bias = wants_bias ? weight + taps * channels : nullptr;
      const int64_t end = std::min(rows, (part + 1) * part_bands * band);
      for (int64_t row = part * part_bands * band; row < end; row += band) {
        kernels.weight_gradient(sizes, data_of<const Number>(dy), data_of<const Number>(x), weight,
                                bias, row, std::min(end, row + band));
      }
    }
  });
  const std::vector<float> all = sum_of_parts(sums, count);
  const at::Tensor by_tap = tensor_of(all.data(), taps * channels, x.scalar_type());
  at::Tensor weight = by_tap.view({taps, channels})
                          .t()
                          .contiguous()
                          .view({channels, 1, window.height, window.width});
  at::Tensor bias;
  if (wants_bias) bias = tensor_of(all.data() + taps * channels, channels, x.scalar_type());
  return {weight, bias};
}

bool is_supported(const at::Tensor& x, const DepthwiseWindow& window) {
  return is_image(x) && x.size(1) >= kLeastChannels &&
         window.height * window.width <= kMostDepthwiseTaps &&
         fits(x.size(2), window.height, window) && fits(x.size(3), window.width, window);
}

}  // namespace

bool takes_depthwise_conv2d_dgrad(const at::Tensor& x, const DepthwiseWindow& window) {
  return is_supported(x, window) && x.scalar_type() == at::kBFloat16 && window.stride > 1;
}

bool takes_depthwise_conv2d_wgrad(const at::Tensor& x, const DepthwiseWindow& window) {
  constexpr int64_t kSmallWindow = 9;
  return is_supported(x, window) &&
         (x.scalar_type() == at::kFloat || window.height * window.width > kSmallWindow);
}

at::Tensor depthwise_conv2d_dgrad_by(Isa isa, const at::Tensor& dy, const at::Tensor& weight,
                                     int64_t height, int64_t width, const DepthwiseWindow& window) {
  require(is_image(dy) && window.height * window.width <= kMostDepthwiseTaps,
          "dy is not supported");
  return dy.scalar_type() == at::kFloat
             ? data_gradient<float>(isa, dy, weight, height, width, window)
             : data_gradient<Bf16>(isa, dy, weight, height, width, window);
}

std::pair<at::Tensor, at::Tensor> depthwise_conv2d_wgrad_by(Isa isa, const at::Tensor& dy,
                                                            const at::Tensor& x,
                                                            const DepthwiseWindow& window,
                                                            bool wants_bias) {
  require(is_supported(x, window), "x is not supported");
  require(is_image(dy) && dy.scalar_type() == x.scalar_type(), "dy is not supported");
  return x.scalar_type() == at::kFloat ? weight_gradient<float>(isa, dy, x, window, wants_bias)
                                       : weight_gradient<Bf16>(isa, dy, x, window, wants_bias);
}

namespace {

at::Tensor dgrad_on_cpu(const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                        int64_t width, int64_t stride, int64_t padding, int64_t dilation) {
  return depthwise_conv2d_dgrad_by(best_isa(), dy.contiguous(at::MemoryFormat::ChannelsLast),
                                   weight, height, width,
                                   {.height = weight.size(2),
                                    .width = weight.size(3),
                                    .stride = stride,
                                    .padding = padding,
                                    .dilation = dilation});
}

std::tuple<at::Tensor, at::Tensor> wgrad_on_cpu(const at::Tensor& dy, const at::Tensor& x,
                                                int64_t height, int64_t width, int64_t stride,
                                                int64_t padding, int64_t dilation,
                                                bool wants_bias) {
  auto [weight, bias] =
      depthwise_conv2d_wgrad_by(best_isa(), dy.contiguous(at::MemoryFormat::ChannelsLast), x,
                                {.height = height,
                                 .width = width,
                                 .stride = stride,
                                 .padding = padding,
                                 .dilation = dilation},
                                wants_bias);
  return {std::move(weight), std::move(bias)};
}

const auto& dgrad_operator() {
  static const Operator kData(
      "depthwise_conv2d_dgrad(Tensor dy, Tensor weight, int height, int width, int stride, int "
      "padding, int dilation) -> Tensor",
      dgrad_on_cpu);
  return kData;
}

const auto& wgrad_operator() {
  static const Operator kWeight(
      "depthwise_conv2d_wgrad(Tensor dy, Tensor x, int height, int width, int stride, int padding, "
      "int dilation, bool wants_bias) -> (Tensor weight, Tensor bias)",
      wgrad_on_cpu);
  return kWeight;
}

}  // namespace

c10::OperatorHandle depthwise_conv2d_dgrad_operator() { return dgrad_operator().handle(); }
c10::OperatorHandle depthwise_conv2d_wgrad_operator() { return wgrad_operator().handle(); }

at::Tensor depthwise_conv2d_dgrad(const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                                  int64_t width, const DepthwiseWindow& window) {
  return dgrad_operator()(dy, weight, height, width, window.stride, window.padding,
                          window.dilation);
}

std::pair<at::Tensor, at::Tensor> depthwise_conv2d_wgrad(const at::Tensor& dy, const at::Tensor& x,
                                                         const DepthwiseWindow& window,
                                                         bool wants_bias) {
  auto [weight, bias] = wgrad_operator()(dy, x, window.height, window.width, window.stride,
                                         window.padding, window.dilation, wants_bias);
  return {weight, bias};
}

}  // namespace gallop::kernel

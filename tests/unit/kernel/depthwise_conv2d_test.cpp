// Gradients of depthwise convolution against LibTorch's in fp64.
#include "gallop/kernel/depthwise_conv2d.h"

#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>

#include "gallop/base/error.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

struct Shape {
  int64_t images, channels, height, width;
  DepthwiseWindow window;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.images << "x" << shape.channels << "x" << shape.height << "x" << shape.width
       << ", window " << shape.window.height << "x" << shape.window.width << ", stride "
       << shape.window.stride << ", padding " << shape.window.padding << ", dilation "
       << shape.window.dilation;
}

const std::vector<Shape> kShapes = {
    {2, 16, 6, 5, {.height = 3, .width = 3, .padding = 1}},
    {3, 40, 9, 8, {.height = 3, .width = 3, .stride = 2, .padding = 1}},
    {2, 130, 7, 11, {.height = 5, .width = 5, .padding = 2}},
    {1, 72, 12, 9, {.height = 5, .width = 5, .stride = 2, .padding = 2}},
    {2, 97, 10, 10, {.height = 7, .width = 7, .padding = 3}},
    // The window exceeds the image, so that no column of it is always within.
    {4, 24, 3, 3, {.height = 7, .width = 7, .padding = 3}},
    {2, 32, 1, 2, {.height = 3, .width = 3, .stride = 2, .padding = 1}},
    {2, 48, 11, 10, {.height = 3, .width = 3, .padding = 2, .dilation = 2}},
    {1, 64, 9, 9, {.height = 2, .width = 4, .stride = 3}},
    {2, 31, 5, 6, {.height = 1, .width = 1}},
    // Many bands and parts.
    {8, 64, 40, 33, {.height = 3, .width = 3, .padding = 1}},
};

at::Tensor image(at::IntArrayRef sizes, at::ScalarType format) {
  return at::randn(sizes).to(format).contiguous(at::MemoryFormat::ChannelsLast);
}

double difference(const at::Tensor& got, const at::Tensor& wanted) {
  EXPECT_EQ(got.sizes(), wanted.sizes());
  const double scale = wanted.abs().max().item<double>();
  return (got.to(at::kDouble) - wanted).abs().max().item<double>() / scale;
}

class DepthwiseConv2d : public IsaTest {};

TEST_P(DepthwiseConv2d, HasLibTorchsGradients) {
  for (const at::ScalarType format : {at::kFloat, at::kBFloat16}) {
    const double most = format == at::kFloat ? 2e-6 : 5e-3;
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(testing::PrintToString(shape));
      const auto& window = shape.window;
      const int64_t channels = shape.channels;
      const at::Tensor x = image({shape.images, channels, shape.height, shape.width}, format);
      const at::Tensor weight = at::randn({channels, 1, window.height, window.width}).to(format);
      const auto wide = [](const at::Tensor& tensor) { return tensor.to(at::kDouble); };
      const std::vector<int64_t> stride(2, window.stride), padding(2, window.padding),
          dilation(2, window.dilation);
      const at::Tensor y = at::convolution(x, weight, {}, stride, padding, dilation,
                                           /*transposed=*/false, {0, 0}, channels);
      const at::Tensor dy = image(y.sizes(), format);
      const auto [dx, dweight, dbias] = at::convolution_backward(
          wide(dy), wide(x), wide(weight), channels, stride, padding, dilation,
          /*transposed=*/false, {0, 0}, channels, {true, true, true});
      EXPECT_LT(difference(depthwise_conv2d_dgrad_by(GetParam(), dy, weight, shape.height,
                                                     shape.width, window),
                           dx),
                most);
      const auto [our_weight, our_bias] =
          depthwise_conv2d_wgrad_by(GetParam(), dy, x, window, /*wants_bias=*/true);
      EXPECT_LT(difference(our_weight, dweight), most);
      EXPECT_LT(difference(our_bias, dbias), most);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DepthwiseConv2d, every_isa());

TEST(DepthwiseConv2dBits, DoNotDependOnTheNumberOfThreads) {
  const Shape& shape = kShapes.back();
  const at::Tensor x = image({shape.images, shape.channels, shape.height, shape.width}, at::kFloat);
  const at::Tensor dy = image(x.sizes(), at::kFloat), weight = at::randn({shape.channels, 1, 3, 3});
  const auto all = [&](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    const at::Tensor dx =
        depthwise_conv2d_dgrad(dy, weight, shape.height, shape.width, shape.window);
    const auto [dweight, dbias] = depthwise_conv2d_wgrad(dy, x, shape.window, /*wants_bias=*/true);
    at::set_num_threads(before);
    return std::vector{dx, dweight, dbias};
  };
  const auto one = all(1), three = all(3);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;
}

TEST(DepthwiseConv2dSizes, AreChecked) {
  const DepthwiseWindow window{.height = 3, .width = 3, .stride = 2},
      large{.height = 5, .width = 5};
  const auto takes = [](const at::Tensor& x, const DepthwiseWindow& of) {
    return takes_depthwise_conv2d_wgrad(x, of);
  };
  const at::Tensor x = image({2, 32, 8, 8}, at::kFloat), narrow = x.to(at::kBFloat16);
  EXPECT_TRUE(takes(x, window));
  EXPECT_FALSE(takes(at::randn({2, 32, 8, 8}), window)) << "not channels_last";
  EXPECT_FALSE(takes(image({2, 8, 8, 8}, at::kFloat), window)) << "few channels";
  EXPECT_FALSE(takes(image({2, 32, 2, 8}, at::kFloat), window)) << "no result";
  EXPECT_FALSE(takes(image({2, 32, 8, 8}, at::kDouble), window)) << "fp64";
  EXPECT_FALSE(takes(narrow, window)) << "LibTorch's is faster";
  EXPECT_TRUE(takes(narrow, large));
  EXPECT_TRUE(takes_depthwise_conv2d_dgrad(narrow, window));
  EXPECT_FALSE(takes_depthwise_conv2d_dgrad(narrow, large)) << "LibTorch's is faster";
  EXPECT_FALSE(takes_depthwise_conv2d_dgrad(x, window)) << "LibTorch's is faster";
  EXPECT_THROW(depthwise_conv2d_dgrad(x, at::randn({32, 2, 3, 3}), 17, 17, window), InternalError);
  EXPECT_THROW(depthwise_conv2d_dgrad(x, at::randn({32, 1, 3, 3}), 8, 8, window), InternalError);
  EXPECT_THROW(depthwise_conv2d_wgrad(x, x, window, false), InternalError);
}

}  // namespace
}  // namespace gallop::kernel

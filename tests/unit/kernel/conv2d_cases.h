#pragma once

#include <string>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "gallop/kernel/conv2d.h"

namespace gallop::kernel {

struct Conv2dCase {
  int64_t images, channels, height, width, out;
  Conv2dWindow window;
  Isa isa = best_isa();
};

inline std::string name_of(const testing::TestParamInfo<Conv2dCase>& info) {
  const Conv2dCase& c = info.param;
  return std::to_string(c.images) + "x" + std::to_string(c.channels) + "x" +
         std::to_string(c.height) + "x" + std::to_string(c.width) + "_to_" + std::to_string(c.out) +
         "_by_" + std::to_string(c.window.height) + "x" + std::to_string(c.window.width) +
         "_stride" + std::to_string(c.window.stride) + "_padding" +
         std::to_string(c.window.padding) + "_isa" + std::to_string(static_cast<int>(c.isa));
}

/// In the layout of the kernels: bf16, channels_last.
inline at::Tensor images(at::IntArrayRef sizes) {
  return at::randn(sizes).to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
}

/// Operands of the case, and LibTorch's gradients. Skips where the machine lacks its instructions.
class Conv2dTest : public testing::TestWithParam<Conv2dCase> {
 protected:
  void SetUp() override {
    const Conv2dCase& c = GetParam();
    if (!has(c.isa)) GTEST_SKIP() << "this machine does not have these instructions";
    at::manual_seed(12);
    x = images({c.images, c.channels, c.height, c.width});
    weight = at::randn({c.out, c.channels, c.window.height, c.window.width}).to(at::kBFloat16);
    const auto size = [&](int64_t in, int64_t window) {
      return (in + 2 * c.window.padding - window) / c.window.stride + 1;
    };
    dy = images({c.images, c.out, size(c.height, c.window.height), size(c.width, c.window.width)});
  }
  at::Tensor gradient_by_library(at::ScalarType format, bool of_x) const {
    const int64_t stride = GetParam().window.stride, padding = GetParam().window.padding;
    const auto [dx, dweight, dbias] = at::convolution_backward(
        dy.to(format), x.to(format), weight.to(format), at::OptionalIntArrayRef(), {stride, stride},
        {padding, padding}, {1, 1}, false, {0, 0}, 1, {of_x, !of_x, false});
    return of_x ? dx : dweight;
  }

  at::Tensor x, weight, dy;
};

}  // namespace gallop::kernel

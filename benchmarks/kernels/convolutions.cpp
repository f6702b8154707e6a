#include <memory>
#include <string>

#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include "cases.h"
#include "gallop/kernel/conv2d.h"
#include "gallop/kernel/conv2d_wgrad.h"
#include "gallop/kernel/depthwise_conv2d.h"

namespace gallop::benchmark {

namespace {

struct Convolution {
  int64_t images, inputs, outputs, size;
  kernel::Conv2dWindow window;

  std::string name() const {
    return fmt::format("{}x{}x{}x{}-to-{}/{}x{}/{}", images, inputs, size, size, outputs,
                       window.height, window.width, window.stride);
  }
};

// Several sets of tensors in rotation, so that they come from memory, as in a step.
struct ConvolutionData {
  std::vector<at::Tensor> x, dy;
  at::Tensor weight;
  mutable size_t turn = 0;

  explicit ConvolutionData(const Convolution& of) {
    const auto bf16 = [](at::IntArrayRef sizes) {
      return at::randn(sizes).to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
    };
    const int64_t to = (of.size + 2 * of.window.padding - of.window.height) / of.window.stride + 1;
    weight = bf16({of.outputs, of.inputs, of.window.height, of.window.width});
    for (int64_t bytes = 0; bytes < (int64_t{64} << 20);) {
      x.push_back(bf16({of.images, of.inputs, of.size, of.size}));
      dy.push_back(bf16({of.images, of.outputs, to, to}));
      bytes += static_cast<int64_t>(x.back().nbytes() + dy.back().nbytes());
    }
  }
  size_t next() const { return turn = (turn + 1) % x.size(); }
};

at::Tensor library_gradient(const ConvolutionData& data, const Convolution& of, bool of_x) {
  const size_t i = data.next();
  const auto [dx, dweight, dbias] = at::convolution_backward(
      data.dy[i], data.x[i], data.weight, {}, {of.window.stride, of.window.stride},
      {of.window.padding, of.window.padding}, {1, 1}, false, {0, 0}, 1, {of_x, !of_x, false});
  // The weight gradient is needed in fp32.
  return of_x ? dx : dweight.to(at::kFloat);
}

// A convolution and each of its gradients separately; only those that Gallop's kernels support.
void add_convolutions(std::vector<MakeCase>& cases, const Convolution& of) {
  const auto add = [&](const char* what, auto ours, auto library) {
    cases.push_back([=] {
      const auto data = std::make_shared<ConvolutionData>(of);
      Case result{.name = fmt::format("conv2d{}/bf16/{}", what, of.name())};
      result.forms.push_back({"gallop", [=] { ours(*data); }});
      result.forms.push_back({"convolution", [=] { library(*data); }});
      return result;
    });
  };
  const ConvolutionData some(of);
  if (kernel::takes_conv2d(some.x[0], some.weight, of.window)) {
    add(
        "",
        [=](const ConvolutionData& d) { kernel::conv2d(d.x[d.next()], d.weight, {}, of.window); },
        [=](const ConvolutionData& d) {
          at::conv2d(d.x[d.next()], d.weight, {}, of.window.stride, of.window.padding);
        });
  }
  if (kernel::takes_conv2d_dgrad(some.dy[0], some.weight, of.size, of.size, of.window)) {
    add(
        "-dgrad",
        [=](const ConvolutionData& d) {
          kernel::conv2d_dgrad(d.dy[d.next()], d.weight, of.size, of.size, of.window);
        },
        [=](const ConvolutionData& d) { library_gradient(d, of, true); });
  }
  if (kernel::takes_conv2d_wgrad(some.x[0], of.outputs, of.window)) {
    add(
        "-wgrad",
        [=](const ConvolutionData& d) {
          const size_t i = d.next();
          kernel::conv2d_wgrad(d.dy[i], d.x[i], of.window);
        },
        [=](const ConvolutionData& d) { library_gradient(d, of, false); });
  }
}

struct Depthwise {
  int64_t images, channels, size;
  kernel::DepthwiseWindow window;
  at::ScalarType type;

  std::string name() const {
    return fmt::format("{}/{}x{}x{}x{}/{}x{}/{}", name_of(type), images, channels, size, size,
                       window.height, window.width, window.stride);
  }
};

// One filter per channel: each gradient separately, if Gallop's kernels support it.
void add_depthwise(std::vector<MakeCase>& cases, const Depthwise& of) {
  const auto make = [of](const char* what, auto make_forms) {
    return [=] {
      const auto image = [&](int64_t size) {
        return at::randn({of.images, of.channels, size, size})
            .to(of.type)
            .contiguous(at::MemoryFormat::ChannelsLast);
      };
      const at::Tensor x = image(of.size);
      const at::Tensor weight =
          at::randn({of.channels, 1, of.window.height, of.window.width}).to(of.type);
      const at::Tensor y =
          at::conv2d(x, weight, {}, of.window.stride, of.window.padding, 1, of.channels);
      Case result{.name = fmt::format("depthwise{}/{}", what, of.name())};
      result.bytes = bytes_of(x) + bytes_of(y);
      result.forms = make_forms(x, weight, image(y.size(2)));
      return result;
    };
  };
  const auto gradient = [of](const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                             bool of_x) {
    return at::convolution_backward(dy, x, weight, {}, {of.window.stride, of.window.stride},
                                    {of.window.padding, of.window.padding}, {1, 1}, false, {0, 0},
                                    of.channels, {of_x, !of_x, false});
  };
  using Forms = std::vector<Form>;
  const at::Tensor some =
      at::empty({of.images, of.channels, of.size, of.size},
                at::TensorOptions(of.type).memory_format(at::MemoryFormat::ChannelsLast));
  if (kernel::takes_depthwise_conv2d_dgrad(some, of.window)) {
    cases.push_back(make("-dgrad", [of, gradient](const at::Tensor& x, const at::Tensor& weight,
                                                  const at::Tensor& dy) {
      return Forms{
          {"gallop",
           [=] { kernel::depthwise_conv2d_dgrad(dy, weight, of.size, of.size, of.window); }},
          {"convolution", [=] { gradient(dy, x, weight, true); }}};
    }));
  }
  if (kernel::takes_depthwise_conv2d_wgrad(some, of.window)) {
    cases.push_back(make("-wgrad", [of, gradient](const at::Tensor& x, const at::Tensor& weight,
                                                  const at::Tensor& dy) {
      return Forms{{"gallop", [=] { kernel::depthwise_conv2d_wgrad(dy, x, of.window, false); }},
                   {"convolution", [=] { gradient(dy, x, weight, false); }}};
    }));
  }
}

}  // namespace

std::vector<MakeCase> convolution_cases() {
  std::vector<MakeCase> cases;
  const kernel::Conv2dWindow three{3, 3, 1, 1}, halving{3, 3, 2, 1}, pixel{1, 1, 2, 0},
      dense{1, 1, 1, 0};
  for (const Convolution& of :
       {Convolution{128, 3, 16, 32, three}, Convolution{128, 16, 16, 32, three},
        Convolution{128, 16, 32, 32, halving}, Convolution{128, 16, 32, 32, pixel},
        Convolution{128, 32, 32, 16, three}, Convolution{128, 32, 64, 16, halving},
        Convolution{128, 32, 64, 16, pixel}, Convolution{128, 64, 64, 8, three},
        Convolution{128, 64, 64, 32, three}, Convolution{128, 128, 128, 16, three},
        Convolution{128, 256, 256, 8, three}, Convolution{128, 512, 512, 4, three},
        // Layers of ResNet-50 and U-Nets, with few images.
        Convolution{8, 64, 64, 32, dense}, Convolution{8, 64, 256, 32, dense},
        Convolution{8, 256, 1024, 8, dense}, Convolution{8, 64, 64, 16, three},
        Convolution{8, 64, 64, 8, three}, Convolution{8, 128, 128, 16, three}}) {
    add_convolutions(cases, of);
  }
  const kernel::DepthwiseWindow next{.height = 3, .width = 3, .padding = 1},
      next_halving{.height = 3, .width = 3, .stride = 2, .padding = 1},
      wide{.height = 5, .width = 5, .padding = 2}, widest{.height = 7, .width = 7, .padding = 3};
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    // Layers of EfficientNet-B0 and ConvNeXt-T.
    for (const Depthwise& of :
         {Depthwise{16, 32, 48, next, type}, Depthwise{16, 96, 48, next_halving, type},
          Depthwise{16, 240, 12, next, type}, Depthwise{16, 672, 6, wide, type},
          Depthwise{16, 1152, 3, wide, type}, Depthwise{8, 96, 24, widest, type},
          Depthwise{8, 384, 6, widest, type}}) {
      add_depthwise(cases, of);
    }
  }
  return cases;
}

}  // namespace gallop::benchmark

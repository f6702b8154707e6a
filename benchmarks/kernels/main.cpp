// Kernels beside what LibTorch has for the same work, in turn, in one process:
//   bench_kernels [--rounds N] [--json FILE] [NAME...]
// A NAME chooses the cases that begin with it, such as attention/bf16. Each case is forward and
// backward; told are the median of each form and the median of the ratio within a round with its
// quartiles, and for kernels that memory limits the traffic that cannot be avoided in GB/s, beside
// that of a copy.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/autograd/autograd.h>

#include "gallop/base/clock.h"
#include "gallop/base/heap.h"
#include "gallop/kernel/conv2d.h"
#include "gallop/kernel/linear_product.h"
#include "gallop/kernel/linear_weight.h"
#include "gallop/kernel/update.h"
#include "gallop/model/functional/activation.h"
#include "gallop/model/functional/attention.h"
#include "gallop/model/functional/batch_norm.h"
#include "gallop/model/functional/cross_entropy.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/embedding.h"
#include "gallop/model/functional/layer_norm.h"
#include "gallop/model/functional/swiglu.h"

namespace {

using namespace gallop;

/// One way to do the work, called often.
struct Form {
  std::string name;
  std::function<void()> run;
};

/// The first form is ours.
struct Case {
  std::string name;
  std::vector<Form> forms;
  double bytes = 0;  ///< Read and written at least; 0 where arithmetic is the limit.
};

using MakeCase = std::function<Case()>;

const char* name_of(at::ScalarType type) { return type == at::kFloat ? "fp32" : "bf16"; }

double bytes_of(const at::Tensor& tensor) { return static_cast<double>(tensor.nbytes()); }

void forward_backward(const at::Tensor& y, const at::Tensor& dy, const at::Tensor& input) {
  y.backward(dy);
  input.mutable_grad().reset();
}

at::Tensor by_products(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                       const at::Tensor& mask) {
  const auto flat = [](const at::Tensor& x_BHTD) { return x_BHTD.flatten(0, 1); };
  auto weights = at::bmm(flat(q) * scale, flat(k).transpose(1, 2));
  if (mask.defined()) weights = weights.add_(mask);
  return at::bmm(at::softmax(weights, -1), flat(v)).view(q.sizes());
}

Case attention_case(int64_t batch, int64_t tokens, int64_t heads, int64_t width, bool causal,
                    at::ScalarType type) {
  const at::Tensor qkv = at::randn({batch, tokens, 3, heads, width}).to(type).requires_grad_(true);
  const at::Tensor dy = at::randn({batch, tokens, heads, width}).to(type);
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  at::Tensor mask;
  if (causal) {
    mask =
        at::full({tokens, tokens}, -std::numeric_limits<double>::infinity(), dy.options()).triu_(1);
  }
  Case result{.name = fmt::format("attention/{}/{}x{}x{}x{}{}", name_of(type), batch, tokens, heads,
                                  width, causal ? "/causal" : "")};
  result.forms.push_back(
      {"gallop", [=] {
         forward_backward(model::functional::attention(qkv, {.causal = causal, .scale = scale}), dy,
                          qkv);
       }});
  const auto parts = [=] { return qkv.permute({2, 0, 3, 1, 4}).unbind(0); };
  result.forms.push_back({"sdpa", [=] {
                            const auto p = parts();
                            const auto y =
                                at::scaled_dot_product_attention(p[0], p[1], p[2], {}, 0, causal);
                            forward_backward(y.transpose(1, 2).contiguous(), dy, qkv);
                          }});
  result.forms.push_back({"bmm", [=] {
                            const auto p = parts();
                            const auto y = by_products(p[0], p[1], p[2], scale, mask);
                            forward_backward(y.transpose(1, 2).contiguous(), dy, qkv);
                          }});
  return result;
}

// relu(batch norm(x) + residual), as a residual network's blocks end.
Case batch_norm_case(std::vector<int64_t> sizes, bool with_residual, at::ScalarType type) {
  const auto channels_last = [](const at::Tensor& x) {
    return x.contiguous(at::MemoryFormat::ChannelsLast);
  };
  const at::Tensor x = channels_last(at::randn(sizes).to(type)).requires_grad_(true);
  const at::Tensor residual =
      with_residual ? channels_last(at::randn(sizes).to(type)).requires_grad_(true) : at::Tensor();
  const at::Tensor dy = channels_last(at::randn(sizes).to(type));
  const kernel::BatchNormParameters parameters{.weight = at::ones({sizes[1]}).requires_grad_(true),
                                               .bias = at::zeros({sizes[1]}).requires_grad_(true),
                                               .running_mean = at::zeros({sizes[1]}),
                                               .running_var = at::ones({sizes[1]})};
  const auto run = [=](const at::Tensor& y) {
    y.backward(dy);
    for (const at::Tensor& leaf : {x, residual, parameters.weight, parameters.bias}) {
      if (leaf.defined()) leaf.mutable_grad().reset();
    }
  };
  Case result{.name = fmt::format("batch-norm/{}/{}{}", name_of(type), fmt::join(sizes, "x"),
                                  with_residual ? "/residual" : "")};
  // Forward reads x twice and writes y; backward reads x and dy twice and writes dx. The residual
  // is read once, and its gradient is written and read in the place of dy.
  result.bytes = bytes_of(x) * (with_residual ? 10 : 8);
  result.forms.push_back(
      {"gallop",
       [=] { run(model::functional::batch_norm(x, residual, parameters, {.relu = true})); }});
  result.forms.push_back({"aten", [=] {
                            at::Tensor y =
                                at::batch_norm(x, parameters.weight, parameters.bias,
                                               parameters.running_mean, parameters.running_var,
                                               true, parameters.momentum, parameters.eps, true);
                            if (residual.defined()) y.add_(residual);
                            run(y.relu_());
                          }});
  return result;
}

// The norm of an fp32 stream and a branch in bf16, for a product in bf16; or all in fp32.
Case layer_norm_case(int64_t rows, int64_t width, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, width}).requires_grad_(true);
  const at::Tensor branch = at::randn({rows, width}).to(type).requires_grad_(true);
  const at::Tensor weight = at::ones({width}).requires_grad_(true);
  const at::Tensor bias = at::zeros({width}).requires_grad_(true);
  const at::Tensor dy = at::randn({rows, width}).to(type), dsum = at::randn({rows, width});
  const auto run = [=](const at::Tensor& y, const at::Tensor& sum) {
    torch::autograd::backward({y, sum}, {dy, dsum});
    for (const at::Tensor& leaf : {x, branch, weight, bias}) leaf.mutable_grad().reset();
  };
  const bool bf16 = type == at::kBFloat16;
  Case result{.name = fmt::format("layer-norm/{}/{}x{}", name_of(type), rows, width)};
  // Forward reads both and writes the sum and y; backward reads dy, dsum and the sum and writes the
  // two gradients, which are one in fp32.
  result.bytes = 5 * bytes_of(x) + (bf16 ? 4 : 3) * bytes_of(branch);
  result.forms.push_back(
      {"gallop", [=] {
         const bool before = at::autocast::is_autocast_enabled(at::kCPU);
         at::autocast::set_autocast_enabled(at::kCPU, bf16);
         const auto both = model::functional::layer_norm({x, branch}, weight, bias, 1e-5, false);
         at::autocast::set_autocast_enabled(at::kCPU, before);
         run(both.y, both.sum);
       }});
  result.forms.push_back({"aten", [=] {
                            const at::Tensor sum = x + branch;
                            run(at::layer_norm(sum, width, weight, bias, 1e-5).to(type), sum);
                          }});
  return result;
}

Case activation_case(kernel::Activation kind, const char* name, int64_t rows, int64_t width,
                     at::ScalarType type) {
  const at::Tensor x = at::randn({rows, width}).to(type).requires_grad_(true);
  const at::Tensor bias = at::randn({width}).requires_grad_(true);
  const at::Tensor dy = at::randn({rows, width}).to(type);
  const auto run = [=](const at::Tensor& y) {
    y.backward(dy);
    for (const at::Tensor& leaf : {x, bias}) leaf.mutable_grad().reset();
  };
  Case result{.name = fmt::format("{}/{}/{}x{}", name, name_of(type), rows, width)};
  result.bytes = 5 * bytes_of(x);
  result.forms.push_back({"gallop", [=] { run(model::functional::activation(kind, x, bias)); }});
  result.forms.push_back({"aten", [=] {
                            const at::Tensor sum = x + bias.to(type);
                            run(kind == kernel::Activation::kGelu ? at::gelu(sum)
                                                                  : at::gelu(sum, "tanh"));
                          }});
  return result;
}

// One update by AdamW of `count` matrices.
Case adamw_case(int64_t count, int64_t rows, int64_t columns) {
  std::vector<at::Tensor> parameters, gradients, first, second, steps;
  for (int64_t i = 0; i < count; ++i) {
    parameters.push_back(at::randn({rows, columns}));
    gradients.push_back(at::randn({rows, columns}));
    first.push_back(at::zeros({rows, columns}));
    second.push_back(at::zeros({rows, columns}));
    steps.push_back(at::ones({}));
  }
  Case result{.name = fmt::format("adamw/fp32/{}x{}x{}", count, rows, columns)};
  result.bytes = 7 * static_cast<double>(count) * bytes_of(parameters[0]);
  result.forms.push_back(
      {"gallop", [=] {
         const kernel::UpdateRule& rule = kernel::update_rule("adamw");
         std::vector<kernel::UpdateTensor> tensors;
         for (size_t i = 0; i < parameters.size(); ++i) {
           tensors.push_back(
               {.parameter = parameters[i].mutable_data_ptr<float>(),
                .gradient = gradients[i].const_data_ptr<float>(),
                .states = {first[i].mutable_data_ptr<float>(), second[i].mutable_data_ptr<float>()},
                .size = rows * columns,
                .factors = {0.1F, 0.999F, 0.001F, 1e-8F, 0.99999F, 1e-3F, 1}});
         }
         kernel::update(rule, tensors);
       }});
  result.forms.push_back({"aten", [=] {
                            at::_fused_adamw_(parameters, gradients, first, second, {}, steps, 1e-3,
                                              0.9, 0.999, 0.01, 1e-8, false, false);
                          }});
  return result;
}

// Logits in `type`, as a product under autocast leaves them.
Case cross_entropy_case(int64_t rows, int64_t classes, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, classes}).to(type).requires_grad_(true);
  const at::Tensor target = at::randint(classes, {rows}, at::kLong);
  const auto run = [=](const at::Tensor& loss) {
    loss.backward();
    x.mutable_grad().reset();
  };
  Case result{.name = fmt::format("cross-entropy/{}/{}x{}", name_of(type), rows, classes)};
  result.bytes = 3 * bytes_of(x);
  result.forms.push_back(
      {"gallop", [=] { run(model::functional::cross_entropy(x, target, {}).loss); }});
  result.forms.push_back(
      {"aten",
       [=] { run(at::cross_entropy_loss(x.to(at::kFloat), target, {}, at::Reduction::Sum)); }});
  return result;
}

// With the last linear layer, whose weights are fp32, under autocast where `type` is bf16.
Case linear_cross_entropy_case(int64_t rows, int64_t width, int64_t classes, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, width}).to(type).requires_grad_(true);
  const at::Tensor weight = at::randn({classes, width}).mul_(0.02).requires_grad_(true);
  const at::Tensor target = at::randint(classes, {rows}, at::kLong);
  const auto run = [=](const at::Tensor& loss) {
    loss.backward();
    for (const at::Tensor& leaf : {x, weight}) leaf.mutable_grad().reset();
  };
  Case result{
      .name = fmt::format("linear-cross-entropy/{}/{}x{}x{}", name_of(type), rows, width, classes)};
  result.forms.push_back(
      {"gallop", [=] {
         run(model::functional::cross_entropy(model::Output{x, weight}, target, {}).loss);
       }});
  result.forms.push_back(
      {"aten", [=] {
         const at::Tensor logits = at::linear(x, weight.to(type));
         run(at::cross_entropy_loss(logits.to(at::kFloat), target, {}, at::Reduction::Sum));
       }});
  return result;
}

Case embedding_case(int64_t batch, int64_t tokens, int64_t rows, int64_t width) {
  const at::Tensor indices = at::randint(rows, {batch, tokens}, at::kLong);
  const at::Tensor weight = at::randn({rows, width}).requires_grad_(true);
  const at::Tensor positions = at::randn({tokens, width}).requires_grad_(true);
  const at::Tensor dy = at::randn({batch, tokens, width});
  const auto run = [=](const at::Tensor& y) {
    y.backward(dy);
    for (const at::Tensor& leaf : {weight, positions}) leaf.mutable_grad().reset();
  };
  Case result{.name = fmt::format("embedding/fp32/{}x{}/{}x{}", batch, tokens, rows, width)};
  // Forward reads and writes rows; backward reads them twice and writes both gradients.
  result.bytes = 4 * bytes_of(dy) + bytes_of(weight) + bytes_of(positions);
  result.forms.push_back(
      {"gallop", [=] { run(model::functional::embedding(indices, weight, positions)); }});
  result.forms.push_back({"aten", [=] { run(at::embedding(weight, indices) + positions); }});
  return result;
}

Case dropout_case(int64_t rows, int64_t width, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, width}).to(type).requires_grad_(true);
  const at::Tensor dy = at::randn({rows, width}).to(type);
  Case result{.name = fmt::format("dropout/{}/{}x{}", name_of(type), rows, width)};
  result.bytes = 4 * bytes_of(x);
  result.forms.push_back(
      {"gallop", [=] { forward_backward(model::functional::dropout(x, 0.1, true), dy, x); }});
  result.forms.push_back({"aten", [=] { forward_backward(at::dropout(x, 0.1, true), dy, x); }});
  return result;
}

Case swiglu_case(int64_t rows, int64_t width, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, 2 * width}).to(type).requires_grad_(true);
  const at::Tensor dy = at::randn({rows, width}).to(type);
  Case result{.name = fmt::format("swiglu/{}/{}x{}", name_of(type), rows, width)};
  result.bytes = 3 * bytes_of(x) + 2 * bytes_of(dy);
  result.forms.push_back(
      {"gallop", [=] { forward_backward(model::functional::swiglu(x), dy, x); }});
  result.forms.push_back({"aten", [=] {
                            const auto parts = x.chunk(2, 1);
                            forward_backward(at::silu(parts[0]) * parts[1], dy, x);
                          }});
  return result;
}

// The gradient of a linear layer's weight alone.
Case linear_weight_case(int64_t rows, int64_t outputs, int64_t inputs) {
  const at::Tensor dy = at::randn({rows, outputs}).to(at::kBFloat16);
  const at::Tensor x = at::randn({rows, inputs}).to(at::kBFloat16);
  Case result{.name = fmt::format("linear-weight/bf16/{}x{}x{}", rows, outputs, inputs)};
  result.forms.push_back({"gallop", [=] { kernel::linear_weight(dy, x); }});
  result.forms.push_back({"mm", [=] { at::mm(dy.t(), x); }});
  return result;
}

struct Convolution {
  int64_t images, inputs, outputs, size;
  kernel::Conv2dWindow window;

  std::string name() const {
    return fmt::format("{}x{}x{}x{}-to-{}/{}x{}/{}", images, inputs, size, size, outputs,
                       window.height, window.width, window.stride);
  }
};

// Tensors of several calls in turn: in a step they come from memory.
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
  // The gradient of a weight is wanted in fp32.
  return of_x ? dx : dweight.to(at::kFloat);
}

// What a convolution and its gradients are, each alone; only what ours takes.
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
        "", [=](const ConvolutionData& d) { kernel::conv2d(d.x[d.next()], d.weight, of.window); },
        [=](const ConvolutionData& d) {
          at::conv2d(d.x[d.next()], d.weight, {}, of.window.stride, of.window.padding);
        });
  }
  if (kernel::takes_conv2d_data(some.dy[0], some.weight, of.size, of.size, of.window)) {
    add(
        "-data",
        [=](const ConvolutionData& d) {
          kernel::conv2d_data(d.dy[d.next()], d.weight, of.size, of.size, of.window);
        },
        [=](const ConvolutionData& d) { library_gradient(d, of, true); });
  }
  if (kernel::takes_conv2d_weight(some.x[0], of.outputs, of.window)) {
    add(
        "-weight",
        [=](const ConvolutionData& d) {
          const size_t i = d.next();
          kernel::conv2d_weight(d.dy[i], d.x[i], of.window);
        },
        [=](const ConvolutionData& d) { library_gradient(d, of, false); });
  }
}

// Other products of a linear layer, forward and backward to its inputs.
Case linear_product_case(int64_t rows, int64_t inner, int64_t outputs, bool turned) {
  const at::Tensor x = at::randn({rows, inner}).to(at::kBFloat16);
  const at::Tensor weight =
      (turned ? at::randn({outputs, inner}) : at::randn({inner, outputs})).to(at::kBFloat16);
  Case result{.name = fmt::format("linear-product{}/bf16/{}x{}x{}", turned ? "" : "-data", rows,
                                  inner, outputs)};
  result.forms.push_back({"gallop", [=] { kernel::linear_product(x, weight, turned); }});
  result.forms.push_back({"mm", [=] { at::mm(x, turned ? weight.t() : weight); }});
  return result;
}

std::vector<MakeCase> all_cases() {
  std::vector<MakeCase> cases;
  const kernel::Conv2dWindow three{3, 3, 1, 1}, halving{3, 3, 2, 1}, pixel{1, 1, 2, 0};
  for (const Convolution& of :
       {Convolution{128, 3, 16, 32, three}, Convolution{128, 16, 16, 32, three},
        Convolution{128, 16, 32, 32, halving}, Convolution{128, 16, 32, 32, pixel},
        Convolution{128, 32, 32, 16, three}, Convolution{128, 32, 64, 16, halving},
        Convolution{128, 32, 64, 16, pixel}, Convolution{128, 64, 64, 8, three},
        Convolution{128, 64, 64, 32, three}, Convolution{128, 128, 128, 16, three},
        Convolution{128, 256, 256, 8, three}, Convolution{128, 512, 512, 4, three}}) {
    add_convolutions(cases, of);
  }
  for (const auto& [rows, inputs, outputs] :
       std::vector<std::array<int64_t, 3>>{{2048, 256, 768},
                                           {2048, 256, 256},
                                           {2048, 256, 1024},
                                           {2048, 1024, 256},
                                           {8320, 192, 576},
                                           {8320, 192, 768},
                                           {8320, 768, 192}}) {
    cases.push_back([=] { return linear_product_case(rows, inputs, outputs, true); });
    cases.push_back([=] { return linear_product_case(rows, outputs, inputs, false); });
  }
  for (const auto& [rows, outputs, inputs] :
       std::vector<std::array<int64_t, 3>>{{2048, 768, 256},
                                           {2048, 256, 256},
                                           {2048, 1024, 256},
                                           {2048, 256, 1024},
                                           {8320, 576, 192},
                                           {8320, 192, 192},
                                           {8320, 768, 192},
                                           {8320, 192, 768},
                                           {1024, 2304, 768},
                                           {1024, 768, 768},
                                           {1024, 3072, 768},
                                           {1024, 768, 3072}}) {
    cases.push_back([=] { return linear_weight_case(rows, outputs, inputs); });
  }
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    for (const bool residual : {false, true}) {
      for (const auto& sizes : std::vector<std::vector<int64_t>>{{128, 16, 32, 32},
                                                                 {128, 32, 16, 16},
                                                                 {128, 64, 8, 8},
                                                                 {128, 256, 8, 8},
                                                                 {32, 64, 56, 56}}) {
        cases.push_back([=] { return batch_norm_case(sizes, residual, type); });
      }
    }
    for (const auto& [rows, width] :
         std::vector<std::array<int64_t, 2>>{{2048, 256}, {8320, 192}, {1024, 768}}) {
      cases.push_back([=] { return layer_norm_case(rows, width, type); });
      cases.push_back([=] {
        return activation_case(kernel::Activation::kGeluTanh, "gelu-tanh", rows, 4 * width, type);
      });
      cases.push_back([=] {
        return activation_case(kernel::Activation::kGelu, "gelu", rows, 4 * width, type);
      });
    }
  }
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    for (const auto& [rows, classes] :
         std::vector<std::array<int64_t, 2>>{{128, 10}, {2048, 65}, {256, 1000}, {1024, 50257}}) {
      cases.push_back([=] { return cross_entropy_case(rows, classes, type); });
    }
    cases.push_back([=] { return linear_cross_entropy_case(1024, 768, 50257, type); });
    for (const auto& [rows, width] :
         std::vector<std::array<int64_t, 2>>{{64, 256}, {2048, 256}, {1024, 3072}}) {
      cases.push_back([=] { return dropout_case(rows, width, type); });
    }
    cases.push_back([=] { return swiglu_case(2048, 704, type); });
    cases.push_back([=] { return swiglu_case(1024, 2048, type); });
  }
  cases.push_back([] { return embedding_case(16, 128, 65, 256); });
  cases.push_back([] { return embedding_case(1, 1024, 50257, 768); });
  cases.push_back([] { return adamw_case(4, 256, 256); });
  cases.push_back([] { return adamw_case(24, 256, 1024); });
  cases.push_back([] { return adamw_case(48, 768, 3072); });
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    for (const bool causal : {true, false}) {
      for (const auto& [batch, tokens, heads, width] :
           std::vector<std::array<int64_t, 4>>{{16, 128, 8, 32},
                                               {128, 65, 3, 64},
                                               {16, 197, 3, 64},
                                               {8, 256, 12, 64},
                                               {4, 512, 12, 64},
                                               {4, 1024, 12, 64},
                                               {2, 2048, 4, 128},
                                               {64, 16, 4, 16}}) {
        cases.push_back([=] { return attention_case(batch, tokens, heads, width, causal, type); });
      }
    }
  }
  return cases;
}

double milliseconds(const Form& form, int64_t repeats) {
  const double begin = monotonic_seconds();
  for (int64_t i = 0; i < repeats; ++i) form.run();
  return 1000 * (monotonic_seconds() - begin) / static_cast<double>(repeats);
}

// Reading and writing 256 MB, by all threads.
double copy_gb_per_second() {
  const at::Tensor from = at::ones({1 << 25}), to = at::zeros({1 << 25});
  std::vector<double> ms;
  const Form copy{"copy", [&] { to.copy_(from); }};
  for (int i = 0; i < 7; ++i) ms.push_back(milliseconds(copy, 1));
  std::sort(ms.begin(), ms.end());
  return 2 * bytes_of(from) / 1e6 / ms[3];
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

nlohmann::json measure(const Case& one, int rounds) {
  constexpr double kSeconds = 0.05;  // Of a form within a round.
  std::vector<std::vector<double>> ms(one.forms.size());
  std::vector<int64_t> repeats;
  for (const Form& form : one.forms) {
    milliseconds(form, 2);
    repeats.push_back(
        std::clamp<int64_t>(std::llround(1000 * kSeconds / milliseconds(form, 1)), 1, 1000));
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ms.size(); ++i) ms[i].push_back(milliseconds(one.forms[i], repeats[i]));
  }
  nlohmann::json result{{"name", one.name}, {"others", nlohmann::json::array()}};
  const double median = quantile(ms[0], 0.5);
  result["ms"] = median;
  result["gb_per_second"] = one.bytes / 1e6 / median;
  std::string line =
      fmt::format("{:38} {:8.3f} {:5}", one.name, median,
                  one.bytes > 0 ? fmt::format("{:.0f}", one.bytes / 1e6 / median) : "");
  for (size_t i = 1; i < ms.size(); ++i) {
    std::vector<double> ratios;
    for (size_t round = 0; round < ms[i].size(); ++round)
      ratios.push_back(ms[i][round] / ms[0][round]);
    result["others"].push_back({{"name", one.forms[i].name},
                                {"ms", quantile(ms[i], 0.5)},
                                {"ratio", quantile(ratios, 0.5)},
                                {"quartiles", {quantile(ratios, 0.25), quantile(ratios, 0.75)}}});
    line += fmt::format("  {:>5} {:9.3f} {:5.2f} ({:.2f} to {:.2f})", one.forms[i].name,
                        quantile(ms[i], 0.5), quantile(ratios, 0.5), quantile(ratios, 0.25),
                        quantile(ratios, 0.75));
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
  return result;
}

}  // namespace

int main(int count, char** words) {
  keep_freed_memory();
  std::vector<std::string> names;
  std::string json;
  int rounds = 9;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if ((word == "--rounds" || word == "--json") && i + 1 < count) {
      (word == "--rounds" ? void(rounds = std::stoi(words[++i])) : void(json = words[++i]));
    } else {
      names.push_back(word);
    }
  }
  const double copy = copy_gb_per_second();
  fmt::print("copy: {:.0f} GB/s\n{:38} {:>8} {:>5}  others, ms, and their time in Gallop's\n", copy,
             "forward and backward", "gallop", "GB/s");
  nlohmann::json results = nlohmann::json::array();
  for (const MakeCase& make : all_cases()) {
    const Case one = make();
    if (!names.empty() && std::none_of(names.begin(), names.end(), [&](const std::string& name) {
          return one.name.starts_with(name);
        })) {
      continue;
    }
    results.push_back(measure(one, rounds));
  }
  if (!json.empty()) {
    std::ofstream(json) << nlohmann::json{{"copy_gb_per_second", copy}, {"results", results}}.dump(
                               1)
                        << "\n";
  }
}

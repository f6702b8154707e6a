#include "gallop/compile/codegen/loop_kernel.h"

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/elu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardsigmoid_backward.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardswish_backward.h>
#include <ATen/ops/hardtanh_backward.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/softplus_backward.h>
#include <ATen/ops/threshold.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/compile/codegen/cpu_source.h"
#include "gallop/compile/codegen/loop_builder.h"
#include "unit/compile/cache_folder.h"

namespace gallop::compile {
namespace {

std::unique_ptr<LoopKernel> make_one(const LoopProgram& program, KernelCompiler& compiler) {
  return std::move(LoopKernel::make(std::span(&program, 1), compiler)[0]);
}

/// A formula of this folder and LibTorch's operator, of x or of dy and x.
struct Pair {
  const char* name;
  std::function<Value(LoopBuilder&, Value dy, Value x)> ours;
  std::function<at::Tensor(const at::Tensor& dy, const at::Tensor& x)> theirs;
  double tolerance = 1e-6;  // Relative to the result, or to 1 if that is smaller.
};

std::vector<Pair> forward_pairs() {
  using B = LoopBuilder;
  using V = Value;
  using T = const at::Tensor;
  return {
      {"relu", [](B& b, V, V x) { return b.apply(Op::kRelu, x); },
       [](T&, T& x) { return at::relu(x); }, 0},
      {"silu", [](B& b, V, V x) { return silu(b, x); }, [](T&, T& x) { return at::silu(x); }},
      {"gelu", [](B& b, V, V x) { return gelu(b, x); }, [](T&, T& x) { return at::gelu(x); }},
      {"gelu_tanh", [](B& b, V, V x) { return gelu_tanh(b, x); },
       [](T&, T& x) { return at::gelu(x, "tanh"); }},
      {"threshold", [](B& b, V, V x) { return threshold(b, x, 0.5, -3); },
       [](T&, T& x) { return at::threshold(x, 0.5, -3); }, 0},
      {"clamp", [](B& b, V, V x) { return clamp(b, x, -1, 1.5); },
       [](T&, T& x) { return at::clamp(x, -1, 1.5); }, 0},
      {"leaky_relu", [](B& b, V, V x) { return leaky_relu(b, x, 0.01); },
       [](T&, T& x) { return at::leaky_relu(x, 0.01); }, 0},
      {"elu", [](B& b, V, V x) { return elu(b, x, 1.5, 1.25, 0.5); },
       [](T&, T& x) { return at::elu(x, 1.5, 1.25, 0.5); }},
      {"softplus", [](B& b, V, V x) { return softplus(b, x, 2, 20); },
       [](T&, T& x) { return at::softplus(x, 2, 20); }},
      {"hardsigmoid", [](B& b, V, V x) { return hardsigmoid(b, x); },
       [](T&, T& x) { return at::hardsigmoid(x); }},
      {"hardswish", [](B& b, V, V x) { return hardswish(b, x); },
       [](T&, T& x) { return at::hardswish(x); }},
      {"mish", [](B& b, V, V x) { return mish(b, x); }, [](T&, T& x) { return at::mish(x); }},
  };
}

std::vector<Pair> backward_pairs() {
  using B = LoopBuilder;
  using V = Value;
  using T = const at::Tensor;
  return {
      {"silu", [](B& b, V dy, V x) { return silu_gradient(b, dy, x); },
       [](T& dy, T& x) { return at::silu_backward(dy, x); }},
      {"gelu", [](B& b, V dy, V x) { return gelu_gradient(b, dy, x); },
       [](T& dy, T& x) { return at::gelu_backward(dy, x); }},
      {"gelu_tanh", [](B& b, V dy, V x) { return gelu_tanh_gradient(b, dy, x); },
       [](T& dy, T& x) { return at::gelu_backward(dy, x, "tanh"); }},
      {"threshold", [](B& b, V dy, V x) { return threshold_gradient(b, dy, x, 0.5); },
       [](T& dy, T& x) { return at::threshold_backward(dy, x, 0.5); }, 0},
      {"clamp", [](B& b, V dy, V x) { return clamp_gradient(b, dy, x, -1, 1.5); },
       [](T& dy, T& x) {
         return at::where((x >= -1).logical_and(x <= 1.5), dy, 0.0).to(dy.dtype());
       },
       0},
      {"leaky_relu", [](B& b, V dy, V x) { return leaky_relu_gradient(b, dy, x, 0.01); },
       [](T& dy, T& x) { return at::leaky_relu_backward(dy, x, 0.01, false); }, 0},
      {"elu", [](B& b, V dy, V x) { return elu_gradient(b, dy, x, 1.5, 1.25, 0.5); },
       [](T& dy, T& x) { return at::elu_backward(dy, 1.5, 1.25, 0.5, false, x); }},
      {"softplus", [](B& b, V dy, V x) { return softplus_gradient(b, dy, x, 2, 20); },
       [](T& dy, T& x) { return at::softplus_backward(dy, x, 2, 20); }},
      {"hardsigmoid", [](B& b, V dy, V x) { return hardsigmoid_gradient(b, dy, x); },
       [](T& dy, T& x) { return at::hardsigmoid_backward(dy, x); }},
      {"hardswish", [](B& b, V dy, V x) { return hardswish_gradient(b, dy, x); },
       [](T& dy, T& x) { return at::hardswish_backward(dy, x); }},
  };
}

// Numbers of all sizes that occur, and the ends.
at::Tensor numbers(at::ScalarType type) {
  const double ends[] = {0,
                         -0.0,
                         1,
                         -1,
                         0.5,
                         1.5,
                         3,
                         -3,
                         20,
                         -20,
                         88,
                         -88,
                         200,
                         -200,
                         1e6,
                         -1e6,
                         1e-30,
                         -1e-30,
                         1e30,
                         -1e30,
                         std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::quiet_NaN()};
  const at::Tensor x = at::randn({1000}) * 3;
  for (size_t i = 0; i < std::size(ends); ++i) {
    x[static_cast<int64_t>(i)].fill_(ends[i]);
  }
  return x.to(type);
}

bool is_near(double x, double y, double tolerance) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return true;
  return std::abs(x - y) <= tolerance * std::max(std::abs(y), 1.0);
}

// At the ends, where LibTorch's vectors and single numbers differ, either is right.
void expect_near(const at::Tensor& found, const at::Tensor& wanted, const at::Tensor& in_fp64,
                 double tolerance, const std::string& name) {
  const auto a = found.to(at::kDouble), b = wanted.to(at::kDouble);
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a[i].item<double>(), y = b[i].item<double>(), z = in_fp64[i].item<double>();
    EXPECT_TRUE(is_near(x, y, tolerance) || is_near(x, z, tolerance))
        << name << " at " << i << ": " << x << ", LibTorch " << y << ", in fp64 " << z;
  }
}

class Formulas : public testing::TestWithParam<at::ScalarType> {};

TEST_P(Formulas, MatchLibTorch) {
  const at::ScalarType type = GetParam();
  const Format format = type == at::kFloat ? Format::kFp32 : Format::kBf16;
  std::vector<Pair> pairs = forward_pairs();
  const size_t forward = pairs.size();
  for (Pair& pair : backward_pairs()) pairs.push_back(std::move(pair));
  std::vector<LoopProgram> programs;
  for (const Pair& pair : pairs) {
    LoopBuilder b({1000});
    const Value dy = b.input(format, {1}), x = b.input(format, {1});
    b.output(pair.ours(b, dy, x), format, {1});
    programs.push_back(std::move(b).finish());
  }
  KernelCompiler compiler({.timeout_seconds = 3600});
  const auto kernels = LoopKernel::make(programs, compiler);
  const at::Tensor x = numbers(type), dy = at::randn({1000}).to(type);
  for (size_t i = 0; i < pairs.size(); ++i) {
    ASSERT_TRUE(kernels[i]->wait()) << kernels[i]->fallback_reason();
    const at::Tensor y = at::empty_like(x);
    kernels[i]->run({{dy, x}}, {{y}});
    // Half an ulp of bf16 for inexact operators.
    const double rounding = type == at::kFloat || pairs[i].tolerance == 0 ? 0 : 0x1p-8;
    expect_near(y, pairs[i].theirs(dy, x), pairs[i].theirs(dy.to(at::kDouble), x.to(at::kDouble)),
                pairs[i].tolerance + rounding,
                fmt::format("{}{}", pairs[i].name, i < forward ? "" : " backward"));
  }
}

INSTANTIATE_TEST_SUITE_P(Compile, Formulas, testing::Values(at::kFloat, at::kBFloat16));

// Layer norm backward's form with a loss: sums over rows, over columns and over all, in two sweeps.
LoopProgram sums_of_both(int64_t rows, int64_t columns) {
  LoopBuilder b({rows, columns}, 1);
  const Value x = b.input(Format::kFp32, {columns, 1});
  const Value off =
      b.apply(Op::kSubtract, x,
              b.apply(Op::kMultiply, b.apply(Op::kRowSum, x), 1.0 / static_cast<double>(columns)));
  b.output(b.apply(Op::kExp, off), Format::kBf16, {columns, 1});
  const Value square = b.apply(Op::kMultiply, off, off);
  b.output(b.apply(Op::kColumnSum, square), Format::kFp32, {0, 1});
  b.output(b.apply(Op::kTotalSum, square), Format::kFp32, {0, 0});
  return std::move(b).finish();
}

TEST(LoopKernel, IsBitIdenticalForAnyNumberOfThreads) {
  KernelCompiler compiler({.timeout_seconds = 3600});
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{5000, 37}, {300, 1000}, {7, 50'000}}) {
    const auto kernel = make_one(sums_of_both(rows, columns), compiler);
    ASSERT_TRUE(kernel->wait()) << kernel->fallback_reason();
    const at::Tensor x = at::randn({rows, columns});
    std::vector<at::Tensor> all, sums, totals;
    const int before = at::get_num_threads();
    for (const int threads : {1, 2}) {
      at::set_num_threads(threads);
      all.push_back(at::empty(x.sizes(), at::kBFloat16));
      sums.push_back(at::empty({columns}));
      totals.push_back(at::empty({}));
      kernel->run({{x}}, {{all.back(), sums.back(), totals.back()}});
    }
    at::set_num_threads(before);
    for (size_t i = 1; i < all.size(); ++i) {
      EXPECT_TRUE(at::equal(all[0], all[i]));
      EXPECT_TRUE(at::equal(sums[0], sums[i]));
      EXPECT_TRUE(at::equal(totals[0], totals[i]));
    }
    const auto off = x.to(at::kDouble) - x.to(at::kDouble).mean(1, true);
    const auto truth = (off * off).sum(0);
    EXPECT_LE(((sums[0].to(at::kDouble) - truth) / truth).abs().max().item<double>(), 1e-5);
    const double total = truth.sum().item<double>();
    EXPECT_NEAR(totals[0].item<double>(), total, 1e-6 * total);
  }
}

TEST(LoopKernel, SharesCodeBetweenSizesAndConstants) {
  const CacheFolder folder;
  KernelCompiler compiler({.cache_folder = folder.path(), .timeout_seconds = 3600});
  std::set<std::string> symbols;
  for (int64_t rows = 2; rows < 20; ++rows) {
    const LoopProgram program = sums_of_both(rows, 10 * rows);
    symbols.insert(cpu_source(plan(program)).symbol);
    const auto kernel = make_one(program, compiler);
    EXPECT_TRUE(kernel->wait());
    EXPECT_TRUE(kernel->can_run());
    EXPECT_EQ(kernel->fallback_reason(), "");
  }
  EXPECT_EQ(symbols.size(), 1U);
  EXPECT_EQ(compiler.runs(), 1);
}

TEST(LoopKernel, ReportsInvalidTensors) {
  KernelCompiler compiler({.timeout_seconds = 3600});
  const auto kernel = make_one(sums_of_both(4, 8), compiler);
  ASSERT_TRUE(kernel->wait());
  const at::Tensor x = at::ones({4, 8}), y = at::empty({4, 8}, at::kBFloat16),
                   sums = at::empty({8}), total = at::empty({});
  EXPECT_EQ(kernel->bytes(), 4 * 8 * 4 + 4 * 8 * 2 + 8 * 4 + 4);
  const auto message = [&](std::vector<at::Tensor> in, std::vector<at::Tensor> out) {
    try {
      kernel->run(in, out);
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(message({x}, {y, sums, total}), "none");
  EXPECT_EQ(message({x}, {y}), "loop kernel: 1 inputs and 1 outputs where 1 and 3 belong");
  EXPECT_EQ(message({x.to(at::kDouble)}, {y, sums, total}),
            "loop kernel: input 0 is not a tensor of fp32 on the CPU");
  EXPECT_EQ(message({x}, {y, at::empty({7}), total}),
            "loop kernel: output 1 reaches 32 bytes of memory, its tensor has 28");
  KernelCompiler none({.command = "/nowhere/c++"});
  const auto fallback_reason = make_one(sums_of_both(4, 8), none);
  EXPECT_FALSE(fallback_reason->wait());
  EXPECT_FALSE(fallback_reason->can_run());
  EXPECT_THROW(fallback_reason->run({{x}}, {{y, sums, total}}), InternalError);
}

}  // namespace
}  // namespace gallop::compile

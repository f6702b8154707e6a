#include "gallop/kernel/layer_norm.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rms_norm.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/layer_norm.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

constexpr double kEps = 1e-5;

struct Case {
  at::ScalarType x_format = at::kFloat, output = at::kFloat;
  std::optional<at::ScalarType> residual_format = std::nullopt;
  bool rms = false, with_bias = true;
  double mean = 0;
};

std::vector<Case> all_cases() {
  constexpr at::ScalarType kFormats[] = {at::kFloat, at::kBFloat16};
  std::vector<Case> cases;
  for (const auto x : kFormats) {
    for (const auto output : kFormats) {
      for (const bool rms : {false, true}) {
        cases.push_back({x, output, std::nullopt, rms, !rms});
        for (const auto residual : kFormats) cases.push_back({x, output, residual, rms, false});
      }
    }
  }
  return cases;
}

struct Inputs {
  at::Tensor x, residual, weight, bias, dy, dsum;

  Inputs(int64_t rows, int64_t columns, const Case& c) {
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(rows * 1000 + columns));
    const auto draw = [&](at::ScalarType format, double mean) {
      return at::randn({rows, columns}, generator, at::kFloat).mul_(2).add_(mean).to(format);
    };
    x = draw(c.x_format, c.mean);
    if (c.residual_format) residual = draw(*c.residual_format, c.mean);
    weight = at::randn({columns}, generator, at::kFloat).add_(1);
    if (c.with_bias) bias = at::randn({columns}, generator, at::kFloat);
    dy = draw(c.output, 0);
    const auto sum_format =
        c.residual_format ? c10::promoteTypes(c.x_format, *c.residual_format) : c.x_format;
    dsum = draw(sum_format, 0);
  }
};

struct Results {
  at::Tensor y, sum, dsum, dweight, dbias;
};

// The results of LibTorch's operators; in fp64 if `exact`, and else in the formats that autocast
// has.
Results by_library(const Inputs& in, const Case& c, bool exact) {
  const auto format = [&](const at::Tensor& t) { return exact ? at::kDouble : t.scalar_type(); };
  const auto x = leaf(in.x, format(in.x));
  auto sum = x;
  if (in.residual.defined()) sum = x + in.residual.to(format(in.residual));
  // The sum is a leaf, rounded to its format also for the truth.
  sum = leaf(sum.to(in.dsum.scalar_type()), format(in.dsum));
  const auto inner = exact ? at::kDouble : at::kFloat;  // As autocast does.
  const auto weight = leaf(in.weight, inner), bias = leaf(in.bias, inner);
  const int64_t columns = in.x.size(-1);
  const auto y = c.rms ? at::rms_norm(sum.to(inner), columns, weight, kEps)
                       : at::layer_norm(sum.to(inner), columns, weight, bias, kEps);
  const auto out = exact ? y : y.to(c.output);
  out.backward(in.dy.to(out.scalar_type()));
  return {out.detach(), sum.detach(), sum.grad() + in.dsum.to(format(in.dsum)), weight.grad(),
          bias.defined() && bias.grad().defined() ? bias.grad() : in.dy.to(inner).sum(0)};
}

AnyArray array_of(const at::Tensor& t) {
  if (!t.defined()) return {nullptr, false};
  return {t.data_ptr(), t.scalar_type() == at::kBFloat16};
}

Results by_kernels(Isa isa, const Inputs& in, const Case& c) {
  const auto kernels = kernels_for<LayerNormKernels>(isa);
  const bool swap = in.residual.defined() && in.residual.scalar_type() == at::kFloat;
  const auto& wide = swap ? in.residual : in.x;
  const auto& other = swap ? in.x : in.residual;
  const int64_t rows = in.x.size(0), columns = in.x.size(1);
  const auto sum = in.residual.defined() ? at::empty_like(wide) : in.x;
  const auto y = at::empty_like(in.dy), dx = at::empty_like(sum);
  const auto mean = at::empty({rows}, at::kFloat), inverse = at::empty({rows}, at::kFloat);
  const auto sums = at::empty({2, columns}, at::kFloat);
  kernels.forward({.x = array_of(wide),
                   .residual = array_of(other),
                   .sum = array_of(sum),
                   .y = array_of(y),
                   .weight = in.weight.const_data_ptr<float>(),
                   .bias = in.bias.defined() ? in.bias.const_data_ptr<float>() : nullptr,
                   .mean = mean.mutable_data_ptr<float>(),
                   .inverse = inverse.mutable_data_ptr<float>(),
                   .rows = rows,
                   .columns = columns,
                   .eps = kEps,
                   .rms = c.rms});
  kernels.backward({.dy = array_of(in.dy),
                    .dsum = array_of(in.dsum),
                    .sum = array_of(sum),
                    .dx = array_of(dx),
                    .narrowed = nullptr,
                    .weight = in.weight.const_data_ptr<float>(),
                    .mean = mean.const_data_ptr<float>(),
                    .inverse = inverse.const_data_ptr<float>(),
                    .sums = sums.mutable_data_ptr<float>(),
                    .rows = rows,
                    .columns = columns,
                    .rms = c.rms});
  return {y, sum, dx, sums[0], sums[1]};
}

class LayerNormOfIsa : public IsaTest {};

TEST_P(LayerNormOfIsa, MatchesFp64ForEveryShapeAndDataType) {
  for (const Case& c : all_cases()) {
    for (const int64_t columns : {1, 3, 16, 17, 100, 5000}) {
      // Variances of one column are 0: backward is all cancellation.
      if (columns == 1 && !c.rms) continue;
      for (const int64_t rows : {1, 6}) {
        const Inputs in(rows, columns, c);
        const auto found = by_kernels(GetParam(), in, c), truth = by_library(in, c, true);
        const std::string name = fmt::format("{} columns, {} rows, rms {}", columns, rows, c.rms);
        EXPECT_TRUE(found.sum.to(at::kDouble).equal(truth.sum)) << name;
        EXPECT_LE(error_of(found.y, truth.y), 8 * rounding_of(c.output)) << name;
        // With one column the norm's own gradient is 0, but for eps and rounding.
        const double factor = columns == 1 ? 100 : 8;
        EXPECT_LE(error_of(found.dsum, truth.dsum), factor * rounding_of(in.dsum.scalar_type()))
            << name;
        EXPECT_LE(error_of(found.dweight, truth.dweight), 1e-6) << name;
        EXPECT_LE(error_of(found.dbias, truth.dbias), 1e-6) << name;
      }
    }
  }
}

TEST_P(LayerNormOfIsa, IsAsAccurateAsLibTorch) {
  for (Case c : all_cases()) {
    for (const double mean : {0.0, 10.0}) {
      c.mean = mean;
      for (const int64_t columns : {100, 2000}) {
        const Inputs in(16, columns, c);
        const auto found = by_kernels(GetParam(), in, c), truth = by_library(in, c, true);
        const auto library = by_library(in, c, false);
        const double rest = GetParam() == Isa::kBaseline ? 0x1p-25 : 0x1p-27;  // No fma.
        const std::string name =
            fmt::format("{} columns, rms {}, mean {}, formats {} {} {}", columns, c.rms, mean,
                        int(c.x_format), int(c.output), int(c.residual_format.value_or(at::kHalf)));
        EXPECT_LE(error_of(found.y, truth.y), error_of(library.y, truth.y) + rest) << name;
        EXPECT_LE(error_of(found.dsum, truth.dsum), error_of(library.dsum, truth.dsum) + rest)
            << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, LayerNormOfIsa, every_isa());

TEST(LayerNorm, MatchesItsKernels) {
  for (const Case& c : all_cases()) {
    const Inputs in(97, 40, c);
    const auto wanted = by_kernels(best_isa(), in, c);
    const auto result = layer_norm(in.x, in.residual, in.weight, in.bias,
                                   {.eps = kEps, .rms = c.rms, .output = c.output});
    EXPECT_TRUE(result.y.equal(wanted.y));
    EXPECT_TRUE(result.sum.equal(wanted.sum));
    EXPECT_EQ(result.sum.data_ptr() == in.x.data_ptr(), !in.residual.defined());
    const bool narrowed = result.sum.scalar_type() == at::kFloat;
    const auto found = layer_norm_backward(in.dy, in.dsum, result, in.weight, c.rms, narrowed);
    EXPECT_TRUE(found.sum.equal(wanted.dsum));
    if (narrowed) {
      EXPECT_TRUE(found.sum_narrowed.equal(wanted.dsum.to(at::kBFloat16)));
    }
    EXPECT_LE(error_of(found.weight, wanted.dweight), 1e-6);
    EXPECT_LE(error_of(found.bias, wanted.dbias), 1e-6);
    const auto alone = layer_norm_backward(in.dy, {}, result, in.weight, c.rms, false);
    EXPECT_FALSE(alone.sum_narrowed.defined());
    EXPECT_LE(
        error_of(alone.sum.to(at::kDouble) + in.dsum.to(at::kDouble), by_library(in, c, true).dsum),
        8 * rounding_of(in.dsum.scalar_type()));
  }
}

TEST(LayerNorm, SumsAreAsAccurateAsLibTorchs) {
  constexpr double kNoise = 1.05;  // Factor between errors of 300 numbers.
  for (const bool rms : {false, true}) {
    for (const int64_t rows : {100, 2048, 5000}) {
      const Case c{.rms = rms, .with_bias = !rms};
      const Inputs in(rows, 300, c);
      const auto result = layer_norm(in.x, {}, in.weight, in.bias, {.eps = kEps, .rms = rms});
      const auto found = layer_norm_backward(in.dy, in.dsum, result, in.weight, rms, false);
      const auto truth = by_library(in, c, true), library = by_library(in, c, false);
      EXPECT_LE(error_of(found.weight, truth.dweight),
                kNoise * error_of(library.dweight, truth.dweight))
          << rows;
      EXPECT_LE(error_of(found.bias, truth.dbias), kNoise * error_of(library.dbias, truth.dbias))
          << rows;
    }
  }
}

TEST(LayerNorm, FusesTheBiasOfTheResidual) {
  for (const auto format : {at::kFloat, at::kBFloat16}) {
    const Case c{.residual_format = format};
    for (const int64_t columns : {16, 17, 300}) {
      const Inputs in(700, columns, c);
      const at::Tensor shift = at::randn({columns});
      const auto result =
          layer_norm(in.x, in.residual, in.weight, in.bias, {.residual_bias = shift});
      const auto sum = in.x.to(at::kDouble) + in.residual.to(at::kDouble) + shift.to(at::kDouble);
      EXPECT_LE(error_of(result.sum, sum), 2 * rounding_of(at::kFloat));
      const auto alone = layer_norm(result.sum, {}, in.weight, in.bias, LayerNormOptions());
      EXPECT_TRUE(result.y.equal(alone.y));
      const auto found = layer_norm_backward(in.dy, in.dsum, result, in.weight, false, false, true);
      const auto without = layer_norm_backward(in.dy, in.dsum, result, in.weight, false, false);
      EXPECT_TRUE(found.sum.equal(without.sum));
      EXPECT_TRUE(found.weight.equal(without.weight));
      EXPECT_TRUE(found.bias.equal(without.bias));
      const auto truth = found.sum.to(at::kDouble).sum(0);
      // Errors of a few numbers scatter.
      EXPECT_LE(error_of(found.residual_bias, truth), 2 * error_of(found.sum.sum(0), truth));
    }
  }
}

TEST(LayerNorm, DoesNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  const Inputs in(3001, 50, {});
  std::vector<LayerNormGradients> results;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    const auto result = layer_norm(in.x, {}, in.weight, in.bias, LayerNormOptions());
    results.push_back(layer_norm_backward(in.dy, in.dsum, result, in.weight, false, false, true));
  }
  at::set_num_threads(threads);
  for (const auto& result : results) {
    EXPECT_TRUE(result.sum.equal(results[0].sum));
    EXPECT_TRUE(result.weight.equal(results[0].weight));
    EXPECT_TRUE(result.bias.equal(results[0].bias));
    EXPECT_TRUE(result.residual_bias.equal(results[0].residual_bias));
  }
}

TEST(LayerNorm, RejectsUnsupportedInputs) {
  const auto x = at::randn({4, 6}), weight = at::randn({6});
  EXPECT_TRUE(takes_layer_norm(x, {}, weight, {}, at::kFloat));
  EXPECT_FALSE(takes_layer_norm(x, {}, weight, {}, at::kHalf));
  EXPECT_FALSE(takes_layer_norm(x.to(at::kDouble), {}, weight, {}, at::kFloat));
  EXPECT_FALSE(takes_layer_norm(x.to(at::kMeta), {}, weight, {}, at::kFloat));
  EXPECT_FALSE(takes_layer_norm(x, x.narrow(0, 0, 3), weight, {}, at::kFloat));
  EXPECT_FALSE(takes_layer_norm(x, at::randn({6, 4}).t(), weight, {}, at::kFloat));
  EXPECT_FALSE(takes_layer_norm(x, {}, weight.to(at::kBFloat16), {}, at::kFloat));
  EXPECT_FALSE(takes_layer_norm(x, {}, weight, at::randn({5}), at::kFloat));
  EXPECT_THROW(layer_norm(x, {}, at::randn({5}), {}, LayerNormOptions()), InternalError);
  const auto result = layer_norm(x, {}, weight, {}, LayerNormOptions());
  EXPECT_FALSE(takes_layer_norm(x, {}, weight, {}, at::kFloat, weight));
  EXPECT_THROW(layer_norm_backward(x.t(), {}, result, weight, false, false), InternalError);
  EXPECT_THROW(layer_norm_backward(x, x.to(at::kBFloat16), result, weight, false, false),
               InternalError);
}

}  // namespace
}  // namespace gallop::kernel

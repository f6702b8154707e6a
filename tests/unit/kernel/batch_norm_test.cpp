#include "gallop/kernel/batch_norm.h"

#include <cmath>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardswish_backward.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/hardtanh_backward.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

enum class Form { kPlain, kRelu, kResidual, kRelu6, kSilu, kHardswish };

const char* name_of(Form form) {
  switch (form) {
    case Form::kPlain: return "";
    case Form::kRelu: return " relu";
    case Form::kResidual: return " residual relu";
    case Form::kRelu6: return " relu6";
    case Form::kSilu: return " silu";
    case Form::kHardswish: return " hardswish";
  }
  return "?";
}

BatchNormActivation activation_of(Form form) {
  switch (form) {
    case Form::kPlain: return BatchNormActivation::kNone;
    case Form::kRelu:
    case Form::kResidual: return BatchNormActivation::kRelu;
    case Form::kRelu6: return BatchNormActivation::kRelu6;
    case Form::kSilu: return BatchNormActivation::kSilu;
    case Form::kHardswish: return BatchNormActivation::kHardswish;
  }
  return BatchNormActivation::kNone;
}

struct Case {
  std::vector<int64_t> sizes;
  at::ScalarType type = at::kFloat;
  Form form = Form::kPlain;
  double mean = 0, spread = 1;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  out << at::IntArrayRef(c.sizes) << (c.type == at::kFloat ? " fp32" : " bf16");
  return out << name_of(c.form) << " mean " << c.mean << " spread " << c.spread;
}

at::Tensor in_layout(const at::Tensor& x) {
  return x.contiguous(x.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

struct Data {
  explicit Data(const Case& c) {
    const auto generator = at::detail::createCPUGenerator(7);
    const auto normal = [&](at::IntArrayRef sizes) {
      return at::randn(sizes, generator, at::kDouble);
    };
    const int64_t channels = c.sizes[1];
    x = in_layout((normal(c.sizes) * c.spread + c.mean).to(c.type));
    residual = in_layout(normal(c.sizes).to(c.type));
    dy = in_layout(normal(c.sizes).to(c.type));
    more_dy = in_layout(normal(c.sizes).to(c.type));
    weight = (normal({channels}) * 0.3 + 1).to(at::kFloat);
    bias = normal({channels}).to(at::kFloat);
    running_mean = normal({channels}).to(at::kFloat);
    running_var = normal({channels}).square().to(at::kFloat);
  }
  BatchNormParameters parameters() const {
    return {.weight = weight,
            .bias = bias,
            .running_mean = running_mean,
            .running_var = running_var,
            .momentum = 0.25,
            .eps = 1e-5};
  }
  at::Tensor x, residual, dy, more_dy, weight, bias, running_mean, running_var;
};

struct Results {
  at::Tensor y, running_mean, running_var, dx, dresidual, dweight, dbias;
};

// LibTorch's kernels one after the other, in the numbers of `type`. The fp64 reference takes the
// signs of ReLU from `y`, as rounding moves some across 0.
Results by_library(const Data& data, Form form, at::ScalarType type, const at::Tensor& y = {}) {
  const auto stored = [&](const at::Tensor& tensor) { return tensor.to(type); };
  const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
  const auto x = stored(data.x), weight = data.weight.to(wide), bias = data.bias.to(wide);
  Results r;
  r.running_mean = data.running_mean.to(wide, false, /*copy=*/true);
  r.running_var = data.running_var.to(wide, false, /*copy=*/true);
  at::Tensor mean, inverse;
  std::tie(r.y, mean, inverse) =
      at::native_batch_norm(x, weight, bias, r.running_mean, r.running_var, true, 0.25, 1e-5);
  if (form == Form::kResidual) r.y.add_(stored(data.residual));
  const at::Tensor z = r.y;
  auto g = stored(data.dy);
  switch (form) {
    case Form::kPlain: break;
    case Form::kRelu:
    case Form::kResidual:
      r.y = at::relu(z);
      g = at::threshold_backward(g, y.defined() ? stored(y) : r.y, 0);
      break;
    case Form::kRelu6:
      r.y = at::hardtanh(z, 0, 6);
      g = at::hardtanh_backward(g, z, 0, 6);
      break;
    case Form::kSilu:
      r.y = at::silu(z);
      g = at::silu_backward(g, z);
      break;
    case Form::kHardswish: r.y = at::hardswish(z); g = at::hardswish_backward(g, z);
  }
  r.dresidual = g;
  std::tie(r.dx, r.dweight, r.dbias) = at::native_batch_norm_backward(
      g, x, weight, r.running_mean, r.running_var, mean, inverse, true, 1e-5, {true, true, true});
  return r;
}

BatchNormGradientInput gradient_input(const Data& data, Form form, const BatchNormResult& forward) {
  return {.dy = data.dy,
          .x = data.x,
          .weight = data.weight,
          .bias = data.bias,
          .mean = forward.mean,
          .inverse_deviation = forward.inverse_deviation,
          .positive = forward.positive,
          .activation = activation_of(form),
          .wants_residual = form == Form::kResidual};
}

Results by_kernel(const Data& data, Form form, Isa isa) {
  auto parameters = data.parameters();
  Results r;
  r.running_mean = parameters.running_mean = data.running_mean.clone();
  r.running_var = parameters.running_var = data.running_var.clone();
  const bool residual = form == Form::kResidual;
  const auto forward = batch_norm_by(isa, data.x, residual ? data.residual : at::Tensor(),
                                     parameters, activation_of(form), /*keep_positive=*/residual);
  r.y = forward.y;
  const auto gradients = batch_norm_backward_by(isa, gradient_input(data, form, forward));
  r.dx = gradients.x;
  r.dresidual = gradients.residual;
  r.dweight = gradients.weight;
  r.dbias = gradients.bias;
  return r;
}

double norm_of(const at::Tensor& tensor) { return tensor.to(at::kDouble).norm().item<double>(); }

double distance(const at::Tensor& a, const at::Tensor& b) {
  return norm_of(a.to(at::kDouble) - b.to(at::kDouble));
}

// Differences of the whole tensors. `rounding` is the relative distance of neighboring numbers.
void expect_near(const Results& actual, const Results& expected, double rounding, double slack) {
  const auto near = [&](const at::Tensor& a, const at::Tensor& b, double tolerance,
                        const char* name) {
    ASSERT_EQ(a.sizes(), b.sizes()) << name;
    EXPECT_LE(distance(a, b), tolerance * norm_of(b) + std::max(slack, 3e-7)) << name;
  };
  near(actual.y, expected.y, rounding, "y");
  near(actual.running_mean, expected.running_mean, 1e-6, "running mean");
  near(actual.running_var, expected.running_var, 1e-6, "running variance");
  near(actual.dx, expected.dx, 4 * rounding, "dx");
  near(actual.dweight, expected.dweight, 2e-6, "dweight");
  near(actual.dbias, expected.dbias, 2e-6, "dbias");
  if (actual.dresidual.defined()) near(actual.dresidual, expected.dresidual, 0, "dresidual");
}

constexpr Form kForms[] = {Form::kPlain, Form::kRelu, Form::kResidual};
constexpr Form kAllForms[] = {Form::kPlain, Form::kRelu, Form::kResidual,
                              Form::kRelu6, Form::kSilu, Form::kHardswish};

class BatchNorm : public IsaTest {};

TEST_P(BatchNorm, MatchesTheFormulasForAllShapes) {
  const std::vector<std::vector<int64_t>> shapes = {
      {2, 1, 1, 1},  {1, 1, 3, 5},   {1, 3, 7, 9},  {2, 17, 5, 3},   {3, 100, 1, 1},
      {5, 16, 1, 1}, {1, 16, 67, 9}, {4, 32, 8, 8}, {9, 64, 13, 11}, {33, 5000, 1, 2},
      {7, 8, 31, 3}, {65, 24},       {300, 1},      {2, 127},        {19, 48, 20, 20}};
  for (const auto& sizes : shapes) {
    for (const Form form : kAllForms) {
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        const Case c{.sizes = sizes, .type = type, .form = form};
        SCOPED_TRACE(testing::PrintToString(c));
        const Data data(c);
        const auto actual = by_kernel(data, form, GetParam());
        EXPECT_EQ(actual.y.strides(), data.x.strides());
        const auto expected = by_library(data, form, at::kDouble, actual.y);
        // With two pixels dx is what is left of numbers 1000 times as large.
        const bool few = data.x.numel() / sizes[1] < 8;
        expect_near(actual, expected, type == at::kFloat ? 6e-7 : 4e-3,
                    few ? (type == at::kFloat ? 1e-4 : 1e-3) * std::sqrt(data.x.numel()) : 0);
      }
    }
  }
}

// A second gradient gives the result of the sum of both, rounded once.
TEST_P(BatchNorm, AddsASecondGradient) {
  for (const Form form : kAllForms) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const Case c{.sizes = {6, 40, 9, 5}, .type = type, .form = form};
      SCOPED_TRACE(testing::PrintToString(c));
      const Data data(c);
      const bool residual = form == Form::kResidual;
      const auto forward =
          batch_norm_by(GetParam(), data.x, residual ? data.residual : at::Tensor(),
                        data.parameters(), activation_of(form), residual);
      BatchNormGradientInput input = gradient_input(data, form, forward);
      input.more_dy = data.more_dy;
      const auto both = batch_norm_backward_by(GetParam(), input);
      input.dy = data.dy + data.more_dy;
      input.more_dy = at::Tensor();
      const auto sum = batch_norm_backward_by(GetParam(), input);
      const double rounding = type == at::kFloat ? 1e-6 : 4e-3;
      EXPECT_LE(distance(both.x, sum.x), rounding * norm_of(sum.x));
      EXPECT_LE(distance(both.weight, sum.weight), rounding * norm_of(sum.weight));
      EXPECT_LE(distance(both.bias, sum.bias), rounding * norm_of(sum.bias));
      EXPECT_EQ(both.residual.defined(), residual);
      if (residual) {
        EXPECT_TRUE(both.residual.equal(sum.residual));
      }
      input.wants_x = false;
      const auto without = batch_norm_backward_by(GetParam(), input);
      EXPECT_FALSE(without.x.defined());
      EXPECT_TRUE(without.weight.equal(sum.weight));
    }
  }
}

TEST_P(BatchNorm, IsAsAccurateAsLibTorch) {
  std::vector<Case> cases;
  for (const Form form : kForms) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      cases.push_back({.sizes = {32, 16, 32, 32}, .type = type, .form = form});
      cases.push_back({.sizes = {16, 100, 7, 7}, .type = type, .form = form});
    }
    cases.push_back({.sizes = {32, 16, 32, 32}, .form = form, .mean = 1000, .spread = 0.1});
    cases.push_back({.sizes = {16, 17, 9, 9}, .form = form, .mean = -30, .spread = 0.01});
  }
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c));
    const Data data(c);
    const auto ours = by_kernel(data, c.form, GetParam());
    const auto library = by_library(data, c.form, c.type);
    const auto ours_exact = by_library(data, c.form, at::kDouble, ours.y);
    const auto library_exact = by_library(data, c.form, at::kDouble, library.y);
    // Both round a result at least once, so errors of that size are random.
    const auto compare = [&](at::Tensor Results::*field, double one_rounding, const char* name) {
      const double scale = norm_of(ours_exact.*field);
      const double error = distance(ours.*field, ours_exact.*field) / scale;
      const double limit = distance(library.*field, library_exact.*field) / scale;
      EXPECT_LE(error, std::max(1.02 * limit, one_rounding)) << name;
    };
    const double stored = c.type == at::kFloat ? 6e-8 : 4e-3 / 2;
    compare(&Results::y, stored, "y");
    compare(&Results::dx, stored, "dx");
    compare(&Results::running_mean, 6e-8, "running mean");
    compare(&Results::running_var, 6e-8, "running variance");
    compare(&Results::dweight, 6e-8, "dweight");
    compare(&Results::dbias, 6e-8, "dbias");
  }
}

TEST_P(BatchNorm, IsAccurateIfImagesDiffer) {
  // One image of zeros before others far away: a single shift for all would lose them.
  const Data data({.sizes = {64, 16, 16, 16}, .mean = 4000, .spread = 0.5});
  data.x[0].zero_();
  const auto actual = by_kernel(data, Form::kPlain, GetParam());
  const auto expected = by_library(data, Form::kPlain, at::kDouble);
  expect_near(actual, expected, 3e-7, 0);
}

TEST_P(BatchNorm, IsBitIdenticalForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Case c{.sizes = {64, 24, 31, 17}, .type = type, .form = Form::kResidual};
    const Data data(c);
    at::set_num_threads(1);
    const auto one = by_kernel(data, c.form, GetParam());
    for (const int count : {2, 3, 7}) {
      at::set_num_threads(count);
      const auto more = by_kernel(data, c.form, GetParam());
      for (const auto field :
           {&Results::y, &Results::running_mean, &Results::running_var, &Results::dx,
            &Results::dresidual, &Results::dweight, &Results::dbias}) {
        EXPECT_TRUE((one.*field).equal(more.*field)) << count;
      }
    }
    at::set_num_threads(threads);
  }
}

TEST_P(BatchNorm, KeepsNanToItsChannel) {
  const Data data({.sizes = {4, 3, 5, 5}});
  data.x[1][1][2][2].fill_(NAN);
  const auto actual = by_kernel(data, Form::kRelu, GetParam());
  EXPECT_TRUE(actual.y.select(1, 1).isnan().all().item<bool>());
  EXPECT_TRUE(actual.dx.select(1, 1).isnan().all().item<bool>());
  EXPECT_FALSE(actual.y.select(1, 0).isnan().any().item<bool>());
  EXPECT_FALSE(actual.dx.select(1, 2).isnan().any().item<bool>());
  EXPECT_TRUE(std::isnan(actual.running_var[1].item<float>()));
}

TEST_P(BatchNorm, ReturnsTheBiasForASingleValue) {
  const Data data({.sizes = {1, 20, 1, 1}});
  auto parameters = data.parameters();
  const auto before = parameters.running_var.clone();
  const auto result =
      batch_norm_by(GetParam(), data.x, {}, parameters, BatchNormActivation::kNone, false);
  EXPECT_LE(distance(result.y.flatten(), data.bias), 1e-6);
  EXPECT_LE(distance(parameters.running_var, 0.75 * before), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Kernels, BatchNorm, every_isa());

TEST(BatchNormInput, IsValidated) {
  const auto image = at::ones({2, 3, 4, 4});
  EXPECT_FALSE(takes_batch_norm(image));
  EXPECT_TRUE(takes_batch_norm(in_layout(image)));
  EXPECT_FALSE(takes_batch_norm(in_layout(image.to(at::kDouble))));
  EXPECT_FALSE(takes_batch_norm(in_layout(image.to(at::kHalf))));
  EXPECT_FALSE(takes_batch_norm(at::ones({0, 3, 4, 4})));
  EXPECT_FALSE(takes_batch_norm(at::ones({2, 3, 4})));
  EXPECT_TRUE(takes_batch_norm(at::ones({2, 3, 1, 1})));
  EXPECT_TRUE(takes_batch_norm(at::ones({2, 1, 4, 4})));

  const Data data({.sizes = {2, 3, 4, 4}});
  const auto parameters = data.parameters();
  constexpr auto kRelu = BatchNormActivation::kRelu;
  EXPECT_THROW(batch_norm(image, {}, parameters, kRelu, false), InternalError);
  EXPECT_THROW(batch_norm(data.x, data.residual.to(at::kBFloat16), parameters, kRelu, false),
               InternalError);
  EXPECT_THROW(batch_norm(data.x, data.residual, parameters, BatchNormActivation::kSilu, false),
               InternalError);
  auto wrong = parameters;
  wrong.weight = at::ones({4});
  EXPECT_THROW(batch_norm(data.x, {}, wrong, kRelu, false), InternalError);
  const auto result = batch_norm(data.x, data.residual, parameters, kRelu, false);
  BatchNormGradientInput input = gradient_input(data, Form::kResidual, result);
  EXPECT_THROW(batch_norm_backward(input), InternalError);
  input.wants_residual = false;
  input.dy = data.dy[0];
  EXPECT_THROW(batch_norm_backward(input), InternalError);
}

}  // namespace
}  // namespace gallop::kernel

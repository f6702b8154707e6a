#include "gallop/optim/gradients.h"

#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace gallop::optim {
namespace {

at::Tensor numbers(int64_t count) {
  return at::arange(count, at::TensorOptions(c10::kDouble)).mul(0.37).sin().to(c10::kFloat);
}

double exact_norm(const std::vector<at::Tensor>& tensors) {
  double sum = 0;
  for (const at::Tensor& tensor : tensors) {
    sum += tensor.to(c10::kDouble).square().sum().item<double>();
  }
  return std::sqrt(sum);
}

TEST(GradientNorm, IsAccurateForEveryLength) {
  for (const int64_t count : {1, 31, 32, 33, 2047, 2081, 16383, 16384, 16385, 70001}) {
    const std::vector<at::Tensor> gradients = {numbers(count), numbers(7)};
    EXPECT_NEAR(gradient_norm(gradients).item<double>() / exact_norm(gradients), 1, 2e-7) << count;
  }
  EXPECT_EQ(gradient_norm({}).item<double>(), 0);
}

TEST(GradientNorm, DoesNotDependOnTheNumberOfThreads) {
  const std::vector<at::Tensor> gradients = {numbers(70001), numbers(300), numbers(40000)};
  const int threads = at::get_num_threads();
  std::vector<double> norms;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    norms.push_back(gradient_norm(gradients).item<double>());
  }
  at::set_num_threads(threads);
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
}

TEST(GradientNorm, SupportsOtherTypesAndLayouts) {
  const at::Tensor last =
      numbers(4 * 3 * 5 * 5).reshape({4, 3, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const std::vector<at::Tensor> mixed = {last, numbers(9).to(c10::kDouble),
                                         numbers(20).slice(0, 0, 20, 2)};
  EXPECT_NEAR(gradient_norm(mixed).item<double>(), exact_norm(mixed), 1e-6);
}

TEST(GradientNorm, IsFiniteIfAndOnlyIfTheGradientsAre) {
  const auto largest = at::full({100}, std::numeric_limits<float>::max());
  EXPECT_NEAR(gradient_norm({largest}).item<double>() / (10.0 * std::numeric_limits<float>::max()),
              1, 1e-12);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const int64_t at : {0, 31, 16384, 20000}) {
      at::Tensor gradient = numbers(20001);
      gradient.data_ptr<float>()[at] = bad;
      EXPECT_FALSE(std::isfinite(gradient_norm({gradient}).item<double>()));
    }
  }
}

TEST(ClipDivisor, NeverIncreasesTheNorm) {
  const auto divisor = [](double norm, double max_norm) {
    const at::Tensor result =
        clip_divisor(at::full({}, norm, at::TensorOptions(c10::kDouble)), max_norm);
    EXPECT_EQ(result.scalar_type(), c10::kFloat);
    return result.item<double>();
  };
  EXPECT_EQ(divisor(8, 2), 4);
  EXPECT_EQ(divisor(2, 2), 1);
  EXPECT_EQ(divisor(0.5, 2), 1);
  EXPECT_EQ(divisor(0, 2), 1);
  EXPECT_EQ(divisor(std::numeric_limits<double>::infinity(), 2), 1);
  EXPECT_EQ(divisor(std::nan(""), 2), 1);
}

TEST(FirstNonFiniteGradient, ReturnsItsName) {
  NamedTensors parameters = {
      {"none", at::ones({2})}, {"good", at::ones({2})}, {"bad", at::ones({2})}};
  parameters[1].tensor.mutable_grad() = at::ones({2});
  parameters[2].tensor.mutable_grad() = at::ones({2});
  EXPECT_EQ(gradients_of(parameters).size(), 2u);
  EXPECT_EQ(first_non_finite_gradient(parameters), "");
  parameters[2].tensor.mutable_grad().data_ptr<float>()[1] = std::nanf("");
  EXPECT_EQ(first_non_finite_gradient(parameters), "bad");
}

NamedTensor parameter_with(const char* name, const at::Tensor& values, const at::Tensor& gradient) {
  at::Tensor parameter = values.clone().set_requires_grad(true);
  parameter.mutable_grad() = gradient.clone();
  return {name, parameter};
}

TEST(ClipValues, ClampsElementsForAnyScale) {
  const at::Tensor gradient = at::tensor({-5.0F, -0.5F, 0.0F, 0.25F, 3.0F});
  const at::Tensor wanted = at::tensor({-1.0F, -0.5F, 0.0F, 0.25F, 1.0F});
  at::Tensor plain = gradient.clone(), scaled = gradient * 64;
  clip_values({plain}, 1);
  EXPECT_TRUE(at::equal(plain, wanted));
  clip_values({scaled}, 1, at::full({}, 64.0F));
  EXPECT_TRUE(at::equal(scaled, wanted * 64));
}

TEST(ClipAdaptively, ClipsEachUnitRelativeToItsWeights) {
  const double limit = 0.01;
  // Rows of norms 5, 0 and 1; filters; a vector; the classifier with its bias.
  const at::Tensor matrix = at::tensor({3.0F, 4.0F, 0.0F, 0.0F, 0.6F, 0.8F}).reshape({3, 2});
  const at::Tensor of_matrix = at::tensor({6.0F, 8.0F, 3.0F, 4.0F, 3e-4F, 4e-4F}).reshape({3, 2});
  const at::Tensor filters = at::ones({2, 1, 2, 2}), vector = at::full({4}, 0.5F);
  for (const double scale : {1.0, 128.0}) {
    const NamedTensors parameters = {
        parameter_with("matrix", matrix, of_matrix * scale),
        parameter_with("filters", filters, at::full({2, 1, 2, 2}, 3 * scale)),
        parameter_with("vector", vector, at::full({4}, 8 * scale)),
        parameter_with("head", matrix, of_matrix * scale),
        parameter_with("head_bias", vector, at::full({4}, 8 * scale))};
    clip_adaptively(parameters, limit,
                    scale == 1 ? at::Tensor() : at::full({}, static_cast<float>(scale)));
    const auto gradient = [&](size_t i) { return parameters[i].tensor.grad() / scale; };
    // 0.01 * 5 of norm 10; 0.01 * 1e-3 of norm 5; the last is small enough.
    const at::Tensor wanted =
        at::tensor({0.03F, 0.04F, 6e-6F, 8e-6F, 3e-4F, 4e-4F}).reshape({3, 2});
    EXPECT_TRUE(at::allclose(gradient(0), wanted, 1e-5, 0));
    EXPECT_TRUE(at::allclose(gradient(1), at::full({2, 1, 2, 2}, 0.01F), 1e-5, 0));
    EXPECT_TRUE(at::allclose(gradient(2), at::full({4}, 0.005F), 1e-5, 0));
    EXPECT_TRUE(at::equal(gradient(3), of_matrix));
    EXPECT_TRUE(at::equal(gradient(4), at::full({4}, 8.0F)));
  }
}

}  // namespace
}  // namespace gallop::optim

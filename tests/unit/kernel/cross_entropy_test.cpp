#include "gallop/kernel/cross_entropy.h"

#include <cmath>
#include <limits>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/cross_entropy.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

constexpr at::ScalarType kFormats[] = {at::kFloat, at::kBFloat16};
constexpr int64_t kIgnored = -100;

struct Case {
  at::Tensor logits, target;
  CrossEntropyOptions options;
};

Case make_case(int64_t rows, int64_t columns, at::ScalarType format, double spread,
               double smoothing, bool shares = false, at::ScalarType share_format = at::kFloat) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(rows * 1000 + columns));
  Case c{.options = {.label_smoothing = smoothing}};
  c.logits = at::randn({rows, columns}, generator, at::kFloat).mul_(spread).to(format);
  if (shares) {
    c.target = at::softmax(at::randn({rows, columns}, generator, at::kFloat), 1).to(share_format);
  } else {
    c.target = at::randint(columns, {rows}, generator, at::kLong);
    if (rows > 2) c.target[1].fill_(kIgnored);
  }
  return c;
}

struct Results {
  at::Tensor loss, gradient;
};

// The results of LibTorch's operator, which in bf16 works on logits cast to fp32, as under
// autocast.
Results by_library(at::ScalarType format, const Case& c, double gradient) {
  const auto x = leaf(c.logits, c.logits.scalar_type());
  const auto target = c.target.is_floating_point() ? c.target.to(format) : c.target;
  const auto loss = at::cross_entropy_loss(x.to(format), target, {}, at::Reduction::Sum, kIgnored,
                                           c.options.label_smoothing);
  loss.backward(at::full({}, gradient, loss.options()));
  return {loss.detach(), x.grad()};
}

// Without the rounding of the gradient to the format of the logits.
Results truth_of(const Case& c, double gradient) {
  Case wide = c;
  wide.logits = c.logits.to(at::kDouble);
  return by_library(at::kDouble, wide, gradient);
}

template <typename Number>
Results by_kernels(const CrossEntropyKernels& kernels, const Case& c, float gradient) {
  const auto numbers = [](const at::Tensor& t) { return static_cast<Number*>(t.data_ptr()); };
  const int64_t rows = c.logits.size(0), columns = c.logits.size(1);
  const bool shares = c.target.is_floating_point(),
             bf16_shares = c.target.scalar_type() == at::kBFloat16;
  const CrossEntropyTargets targets{
      .indices = shares ? nullptr : c.target.const_data_ptr<int64_t>(),
      .shares_fp32 = shares && !bf16_shares ? c.target.const_data_ptr<float>() : nullptr,
      .shares_bf16 = bf16_shares ? static_cast<const Bf16*>(c.target.data_ptr()) : nullptr,
      .ignored = kIgnored,
      .smoothing = static_cast<float>(c.options.label_smoothing)};
  std::vector<CrossEntropyRow> saved(static_cast<size_t>(rows));
  std::vector<double> losses(saved.size());
  const CrossEntropyRows<Number> forward{numbers(c.logits), targets, saved.data(), losses.data(),
                                         nullptr,           rows,    columns};
  Results r{at::empty({}, at::kDouble), at::empty_like(c.logits)};
  const CrossEntropyGradientRows<Number> backward{
      numbers(c.logits), targets, saved.data(), numbers(r.gradient), gradient, rows, columns};
  if constexpr (std::is_same_v<Number, float>) {
    kernels.forward_fp32(forward);
    kernels.backward_fp32(backward);
  } else {
    kernels.forward_bf16(forward);
    kernels.backward_bf16(backward);
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  r.loss.fill_(sum);
  return r;
}

Results by_kernels(Isa isa, const Case& c, float gradient) {
  const auto kernels = kernels_for<CrossEntropyKernels>(isa);
  return c.logits.scalar_type() == at::kFloat ? by_kernels<float>(kernels, c, gradient)
                                              : by_kernels<Bf16>(kernels, c, gradient);
}

class CrossEntropyOfIsa : public IsaTest {};

TEST_P(CrossEntropyOfIsa, MatchesFp64ForEveryShape) {
  for (const auto format : kFormats) {
    for (const double smoothing : {0.0, 0.1, 1.0}) {
      for (const int64_t columns : {1, 2, 10, 16, 17, 64, 77, 513, 1500}) {
        for (const int64_t rows : {1, 33}) {
          const Case c = make_case(rows, columns, format, 3, smoothing);
          const auto found = by_kernels(GetParam(), c, 0.25F);
          const auto truth = truth_of(c, 0.25);
          const double noise = columns == 1 ? 1e-6 * static_cast<double>(rows) : 0;
          EXPECT_NEAR(found.loss.item<double>(), truth.loss.item<double>(),
                      2e-7 * std::abs(truth.loss.item<double>()) + noise)
              << columns << " " << smoothing;
          EXPECT_LE((found.gradient.to(at::kDouble) - truth.gradient).norm().item<double>(),
                    4 * rounding_of(format) * truth.gradient.norm().item<double>() + noise)
              << columns << " " << smoothing;
        }
      }
    }
  }
}

TEST_P(CrossEntropyOfIsa, SupportsClassProbabilities) {
  for (const auto format : kFormats) {
    for (const auto share_format : kFormats) {
      for (const double smoothing : {0.0, 0.2}) {
        for (const int64_t columns : {3, 16, 100, 777}) {
          const Case c = make_case(5, columns, format, 2, smoothing, true, share_format);
          const auto found = by_kernels(GetParam(), c, 1);
          const auto truth = truth_of(c, 1);
          EXPECT_LE(error_of(found.loss, truth.loss), 1e-6) << columns;
          EXPECT_LE(error_of(found.gradient, truth.gradient), 8 * rounding_of(format)) << columns;
        }
      }
    }
  }
}

TEST_P(CrossEntropyOfIsa, IsAsAccurateAsLibTorch) {
  for (const auto format : kFormats) {
    for (const bool shares : {false, true}) {
      for (const double spread : {0.1, 1.0, 20.0}) {
        for (const double smoothing : {0.0, 0.1}) {
          const Case c = make_case(64, 1000, format, spread, smoothing, shares);
          const auto found = by_kernels(GetParam(), c, 0.3F);
          const auto truth = truth_of(c, static_cast<double>(0.3F));
          const auto library = by_library(at::kFloat, c, static_cast<double>(0.3F));
          EXPECT_LE(error_of(found.loss, truth.loss), error_of(library.loss, truth.loss) + 0x1p-24)
              << format << " " << spread << " " << smoothing << " " << shares;
          // Rounding to bf16 differs for the few values that are half-way.
          EXPECT_LE(error_of(found.gradient, truth.gradient),
                    error_of(library.gradient, truth.gradient) * 1.001 + 0x1p-26)
              << format << " " << spread << " " << smoothing << " " << shares;
        }
      }
    }
  }
}

TEST_P(CrossEntropyOfIsa, PropagatesNonFiniteValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t columns : {3, 16, 40, 600}) {
    for (const int64_t place : {int64_t{0}, columns / 2, columns - 1}) {
      Case c = make_case(1, columns, at::kFloat, 1, 0);
      c.target.fill_(place == 0 ? 1 : 0);
      c.logits[0][place].fill_(std::nanf(""));
      EXPECT_TRUE(std::isnan(by_kernels(GetParam(), c, 1).loss.item<double>())) << place;
      c.logits[0][place].fill_(kInfinity);
      EXPECT_FALSE(std::isfinite(by_kernels(GetParam(), c, 1).loss.item<double>())) << place;
      // A class with logit -inf has no effect.
      c.logits[0][place].fill_(-kInfinity);
      const auto found = by_kernels(GetParam(), c, 1);
      EXPECT_TRUE(std::isfinite(found.loss.item<double>())) << place;
      EXPECT_EQ(found.gradient[0][place].item<float>(), 0);
    }
  }
  // Differences beyond the range of exp.
  Case c = make_case(2, 20, at::kFloat, 1e4, 0);
  EXPECT_LE(error_of(by_kernels(GetParam(), c, 1).loss, truth_of(c, 1).loss), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Kernel, CrossEntropyOfIsa, every_isa());

TEST(CrossEntropy, MatchesItsKernels) {
  for (const auto format : kFormats) {
    const Case c = make_case(301, 77, format, 2, 0.1);
    const auto wanted = by_kernels(best_isa(), c, 0.5F);
    const auto found = cross_entropy(c.logits, c.target, c.options);
    EXPECT_EQ(found.loss.item<float>(), wanted.loss.to(at::kFloat).item<float>());
    EXPECT_TRUE(
        cross_entropy_backward(at::full({}, 0.5F), c.logits, c.target, found.rows, c.options)
            .equal(wanted.gradient));
  }
}

TEST(CrossEntropy, CountsTop1PredictionsAsLibTorch) {
  for (const int64_t columns : {2, 10, 40, 200}) {
    Case c = make_case(500, columns, at::kBFloat16, 1, 0);
    // Small whole numbers are often the same: the first of them is the guess.
    c.logits = c.logits.round();
    const auto right = at::eq(c.logits.argmax(1), c.target).sum();
    const auto found = cross_entropy(c.logits, c.target, c.options);
    EXPECT_EQ(found.correct.item<int64_t>(), right.item<int64_t>()) << columns;
    EXPECT_GT(found.correct.item<int64_t>(), 0);
  }
  const Case shares = make_case(5, 7, at::kFloat, 1, 0, true);
  EXPECT_FALSE(cross_entropy(shares.logits, shares.target, shares.options).correct.defined());
}

TEST(CrossEntropy, IgnoresRowsOfTheIgnoreIndex) {
  Case c = make_case(9, 20, at::kFloat, 1, 0.1);
  c.target.fill_(kIgnored);
  c.logits[3].fill_(std::nanf(""));
  const auto found = cross_entropy(c.logits, c.target, c.options);
  EXPECT_EQ(found.loss.item<float>(), 0);
  EXPECT_EQ(found.correct.item<int64_t>(), 0);
  const auto gradient =
      cross_entropy_backward(at::ones({}), c.logits, c.target, found.rows, c.options);
  EXPECT_EQ(gradient.abs().sum().item<float>(), 0);
}

TEST(CrossEntropy, ReportsTargetsOutOfRange) {
  Case c = make_case(9, 20, at::kFloat, 1, 0);
  for (const int64_t wrong : {20, -1, -101}) {
    c.target[4].fill_(wrong);
    try {
      cross_entropy(c.logits, c.target, c.options);
      FAIL() << "no error";
    } catch (const DataError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("target " + std::to_string(wrong) + " in row 4"), text.npos) << text;
      EXPECT_NE(text.find("20 classes"), text.npos) << text;
    }
  }
}

TEST(CrossEntropy, DoesNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  const Case c = make_case(3001, 100, at::kFloat, 1, 0.1);
  std::vector<Results> results;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    const auto forward = cross_entropy(c.logits, c.target, c.options);
    results.push_back({forward.loss, cross_entropy_backward(at::full({}, 0.1F), c.logits, c.target,
                                                            forward.rows, c.options)});
  }
  at::set_num_threads(threads);
  for (const auto& result : results) {
    EXPECT_TRUE(result.loss.equal(results[0].loss));
    EXPECT_TRUE(result.gradient.equal(results[0].gradient));
  }
}

// A training that diverges ends with a loss that is not finite.
TEST(CrossEntropy, IsInfiniteBeyondTheRangeOfFp32) {
  const at::Tensor logits = at::full({8, 2}, 3e38F);
  logits.select(1, 1).neg_();
  const at::Tensor target = at::ones({8}, at::kLong);
  EXPECT_EQ(cross_entropy(logits, target, {}).loss.item<float>(),
            std::numeric_limits<float>::infinity());
}

TEST(CrossEntropy, RejectsUnsupportedInputs) {
  const auto logits = at::randn({4, 6}), target = at::randint(6, {4}, at::kLong);
  EXPECT_TRUE(takes_cross_entropy(logits, target));
  EXPECT_TRUE(takes_cross_entropy(logits, logits));
  EXPECT_FALSE(takes_cross_entropy(logits.to(at::kDouble), target));
  EXPECT_FALSE(takes_cross_entropy(logits.t(), at::randint(6, {6}, at::kLong)));
  EXPECT_FALSE(takes_cross_entropy(logits.view({2, 2, 6}), target));
  EXPECT_FALSE(takes_cross_entropy(logits, target.to(at::kInt)));
  EXPECT_FALSE(takes_cross_entropy(logits, target.narrow(0, 0, 3)));
  EXPECT_FALSE(takes_cross_entropy(logits, at::randn({4, 5})));
  EXPECT_FALSE(takes_cross_entropy(logits.narrow(0, 0, 0), target.narrow(0, 0, 0)));
  EXPECT_FALSE(takes_cross_entropy(logits.to(at::kMeta), target));
  EXPECT_THROW(cross_entropy(logits.t(), target, {}), InternalError);
  const auto rows = cross_entropy(logits, target, {}).rows;
  EXPECT_THROW(cross_entropy_backward(logits, logits, target, rows, {}), InternalError);
}

}  // namespace
}  // namespace gallop::kernel

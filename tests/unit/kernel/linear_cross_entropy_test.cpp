#include "gallop/kernel/linear_cross_entropy.h"

#include <array>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/kernel/errors.h"

namespace gallop::kernel {
namespace {

struct Case {
  at::Tensor x, weight, target;
};

Case make_case(int64_t rows, int64_t width, int64_t classes, at::ScalarType format) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(rows + classes));
  Case c{at::randn({rows, width}, generator, at::kFloat).to(format),
         at::randn({classes, width}, generator, at::kFloat).mul_(0.2).to(format).to(at::kFloat),
         at::randint(classes, {rows}, generator, at::kLong)};
  c.target[rows / 2].fill_(-100);
  return c;
}

struct Results {
  at::Tensor loss, x, weight;
};

// In parts of so many rows, whose products the library may sum in another order than those of all.
Results by_library(const Case& c, at::ScalarType format, double smoothing, double gradient,
                   int64_t rows_each) {
  const auto x = leaf(c.x, format), weight = leaf(c.weight, format);
  at::Tensor sum;
  for (int64_t row = 0; row < x.size(0); row += rows_each) {
    const auto logits = at::linear(x.slice(0, row, row + rows_each), weight);
    const auto wide = format == at::kDouble ? logits : logits.to(at::kFloat);
    const auto loss = at::cross_entropy_loss(wide, c.target.slice(0, row, row + rows_each), {},
                                             at::Reduction::Sum, -100, smoothing);
    sum = sum.defined() ? sum + loss : loss;
  }
  sum.backward(at::full({}, gradient, sum.options()));
  return {sum.detach(), x.grad(), weight.grad()};
}

Results by_kernel(const Case& c, double smoothing, float gradient, int64_t most_logits) {
  const auto found =
      linear_cross_entropy(c.x, c.weight, c.target,
                           {.targets = {.label_smoothing = smoothing}, .most_logits = most_logits});
  linear_cross_entropy_backward(at::full({}, gradient), found);
  return {found.loss, found.x, found.weight};
}

TEST(LinearCrossEntropy, IsAsAccurateAsLibTorchForAnyChunkSize) {
  for (const auto& [rows, width, classes] :
       {std::array<int64_t, 3>{5, 7, 33}, {100, 48, 5000}, {67, 8, 3001}}) {
    for (const auto format : {at::kFloat, at::kBFloat16}) {
      for (const double smoothing : {0.0, 0.1}) {
        const Case c = make_case(rows, width, classes, format);
        const auto truth = by_library(c, at::kDouble, smoothing, 0.125, rows);
        for (const int64_t rows_each : {rows, int64_t{10}}) {
          const auto library = by_library(c, format, smoothing, 0.125, rows_each);
          const int64_t most_logits = rows_each * classes + 3;
          const auto found = by_kernel(c, smoothing, 0.125F, most_logits);
          EXPECT_EQ(found.weight.scalar_type(), at::kFloat);
          EXPECT_EQ(found.x.scalar_type(), format);
          // Products of fp32 are summed in another order; so are roundings to bf16.
          const double rest = 0x1p-22, noise = 1.05;
          EXPECT_LE(error_of(found.loss, truth.loss),
                    noise * error_of(library.loss, truth.loss) + rest)
              << rows << " " << format;
          EXPECT_LE(error_of(found.x, truth.x), noise * error_of(library.x, truth.x) + rest)
              << rows << " " << format;
          EXPECT_LE(error_of(found.weight, truth.weight),
                    noise * error_of(library.weight, truth.weight) + rest)
              << rows << " " << format << " " << most_logits;
        }
      }
    }
  }
}

TEST(LinearCrossEntropy, ComputesOnlyRequestedGradients) {
  const Case c = make_case(20, 8, 50, at::kFloat);
  const auto none =
      linear_cross_entropy(c.x, c.weight, c.target, {.wants_x = false, .wants_weight = false});
  EXPECT_FALSE(none.x.defined());
  EXPECT_FALSE(none.weight.defined());
  const auto one = linear_cross_entropy(c.x, c.weight, c.target, {.wants_weight = false});
  EXPECT_TRUE(one.x.defined());
  EXPECT_FALSE(one.weight.defined());
  EXPECT_TRUE(one.loss.equal(none.loss));
  const auto logits = at::linear(c.x, c.weight);
  const auto plain = cross_entropy(logits, c.target, {});
  // Less than a row is taken as one.
  const auto by_rows = linear_cross_entropy(c.x, c.weight, c.target, {.most_logits = 1});
  EXPECT_LE(error_of(by_rows.loss, plain.loss), 1e-6);
  EXPECT_TRUE(one.correct.equal(plain.correct));
  EXPECT_LE(error_of(one.loss, plain.loss), 1e-6);
}

TEST(LinearCrossEntropy, RejectsUnsupportedInputs) {
  const Case c = make_case(20, 8, 50, at::kBFloat16);
  EXPECT_TRUE(takes_linear_cross_entropy(c.x, c.weight, c.target));
  EXPECT_FALSE(
      takes_linear_cross_entropy(c.x.to(at::kFloat), c.weight.to(at::kBFloat16), c.target));
  EXPECT_FALSE(takes_linear_cross_entropy(c.x.to(at::kHalf), c.weight, c.target));
  EXPECT_FALSE(takes_linear_cross_entropy(c.x, c.weight.t(), c.target));
  EXPECT_FALSE(takes_linear_cross_entropy(c.x, c.weight, c.x));
  EXPECT_FALSE(takes_linear_cross_entropy(c.x.unsqueeze(0), c.weight, c.target));
  EXPECT_THROW(linear_cross_entropy(c.x, c.weight.t(), c.target, {}), InternalError);
  c.target[3].fill_(50);
  EXPECT_THROW(linear_cross_entropy(c.x, c.weight, c.target, {}), DataError);
}

}  // namespace
}  // namespace gallop::kernel

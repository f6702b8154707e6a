// The ways between regions and the loss of a divided vocabulary, next to LibTorch's operators on
// whole tensors.
#include <cmath>
#include <limits>

#include <ATen/core/Reduction.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "gallop/model/functional/tensor_parallel.h"
#include "gallop/model/functional/vocabulary_cross_entropy.h"
#include "gallop/parallel/collectives_group.h"
#include "unit/parallel/ranks_together.h"

namespace gallop::train {
namespace {

using namespace model::functional;  // NOLINT(google-build-using-namespace)

at::Tensor own_part(const at::Tensor& x, int64_t dim, const TensorGroup& group) {
  const auto bounds = part_bounds(x.size(dim), group.size());
  const auto rank = static_cast<size_t>(group.rank());
  return x.narrow(dim, bounds[rank], bounds[rank + 1] - bounds[rank]);
}

// With 5 elements for 3 processes, and with fewer elements than processes.
TEST(TensorParallelRegions, HaveTheGradientsOfMegatron) {
  for (const int64_t tokens : {5, 6, 2}) {
    const at::Tensor whole = at::randn({2, tokens, 4}), gradient = at::randn({2, tokens, 4});
    parallel::run_ranks_together(3, [&](parallel::Collectives& collectives) {
      const parallel::CollectivesGroup group(collectives, /*sequence_parallel=*/true);
      const auto ranks = static_cast<double>(group.size() * (group.size() + 1)) / 2;
      const auto own = static_cast<double>(group.rank() + 1);
      // The result and the gradient of an input, for a gradient of the result.
      const auto both = [](const at::Tensor& x, const auto& function, const at::Tensor& of_result) {
        const at::Tensor leaf = x.detach().clone().requires_grad_(true);
        const at::Tensor y = function(leaf);
        y.backward(of_result);
        return std::pair(y.detach(), leaf.grad());
      };
      const auto expect = [](const auto& got, const at::Tensor& result, const at::Tensor& of_x) {
        EXPECT_TRUE(at::allclose(got.first, result));
        EXPECT_TRUE(at::allclose(got.second, of_x));
      };
      expect(both(
                 whole, [&](auto x) { return copy_to_tensor_parallel_region(x, group); },
                 gradient * own),
             whole, gradient * ranks);
      expect(both(
                 whole * own, [&](auto x) { return reduce_from_tensor_parallel_region(x, group); },
                 gradient),
             whole * ranks, gradient);
      expect(both(
                 own_part(whole, 1, group),
                 [&](auto x) { return gather_parts(x, 1, tokens, /*sums_gradient=*/true, group); },
                 gradient * own),
             whole, own_part(gradient, 1, group) * ranks);
      expect(both(
                 own_part(whole, 1, group),
                 [&](auto x) { return gather_parts(x, 1, tokens, /*sums_gradient=*/false, group); },
                 gradient),
             whole, own_part(gradient, 1, group));
      expect(both(
                 whole * own, [&](auto x) { return reduce_scatter(x, 1, group); },
                 own_part(gradient, 1, group)),
             own_part(whole, 1, group) * ranks, gradient);
      expect(both(
                 whole, [&](auto x) { return scatter_parts(x, 1, group); },
                 own_part(gradient, 1, group)),
             own_part(whole, 1, group), gradient);
    });
  }
}

TEST(TensorParallelRegions, SumNarrowNumbersInFp32) {
  // 1 + 2^-8 + 2^-8 is 1 in bf16 if each sum is rounded.
  const at::Tensor all = at::tensor({1.0, 0.00390625, 0.00390625}).to(at::kBFloat16);
  parallel::run_ranks_together(3, [&](parallel::Collectives& collectives) {
    const parallel::CollectivesGroup group(collectives, /*sequence_parallel=*/true);
    const at::Tensor own = all.narrow(0, group.rank(), 1);
    EXPECT_EQ(reduce_from_tensor_parallel_region(own, group).item<float>(), 1.0078125F);
    const at::Tensor three = own.expand({3}).contiguous();
    EXPECT_EQ(reduce_scatter(three, 0, group).item<float>(), 1.0078125F);
  });
}

// 10 classes for 3 processes, ignored labels, a row of large logits and one with equal ones.
TEST(VocabularyParallelCrossEntropy, IsThatOfWholeLogits) {
  constexpr int64_t kRows = 7, kClasses = 10;
  at::Tensor logits = at::randn({kRows, kClasses}, at::kDouble);
  logits[1].mul_(1000);
  logits[2].fill_(0.5);
  at::Tensor target = at::randint(kClasses, {kRows}, at::kLong);
  target[3].fill_(-100);
  target[2].fill_(0);  // The first of equal ones is the prediction.
  target[4] = logits[4].argmax();
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    for (const double smoothing : {0.0, 0.1}) {
      const at::Tensor whole = logits.to(type).to(at::kDouble).clone().requires_grad_(true);
      const at::Tensor wanted =
          at::cross_entropy_loss(whole, target, {}, at::Reduction::Sum, -100, smoothing);
      wanted.backward(at::full({}, 0.25, at::kDouble));
      const int64_t correct = whole.argmax(1).eq(target).sum().item<int64_t>();
      const double tolerance = type == at::kDouble ? 1e-12 : type == at::kFloat ? 1e-5 : 1e-2;
      parallel::run_ranks_together(3, [&](parallel::Collectives& collectives) {
        const parallel::CollectivesGroup group(collectives, /*sequence_parallel=*/true);
        const at::Tensor own = own_part(logits, 1, group).to(type).clone().requires_grad_(true);
        const LossSum got = vocabulary_parallel_cross_entropy(
            own, target,
            {.targets = {.ignored = -100, .label_smoothing = smoothing}, .count_correct = true},
            kClasses, group);
        got.loss.backward(at::full({}, 0.25, got.loss.options()));
        EXPECT_TRUE(at::allclose(got.loss.to(at::kDouble), wanted, tolerance, tolerance));
        EXPECT_TRUE(at::allclose(own.grad().to(at::kDouble), own_part(whole.grad(), 1, group),
                                 tolerance, tolerance));
        EXPECT_EQ(got.correct.item<int64_t>(), correct);
      });
    }
  }
}

// The first class of a process has the logit -inf, as for tokens that must not be predicted.
TEST(VocabularyParallelCrossEntropy, TakesInfiniteLogitsAndMarksTargetsThatAreNoClass) {
  constexpr int64_t kRows = 5, kClasses = 9;
  at::Tensor logits = at::randn({kRows, kClasses}, at::kDouble);
  for (const int64_t first : {0, 3, 6}) {
    logits.select(1, first).fill_(-std::numeric_limits<double>::infinity());
  }
  const at::Tensor target = at::tensor({1, 4, 7, 8, -100}, at::kLong);
  const at::Tensor whole = logits.clone().requires_grad_(true);
  const at::Tensor wanted =
      at::cross_entropy_loss(whole, target, {}, at::Reduction::Sum, -100, 0.0);
  wanted.backward();
  parallel::run_ranks_together(3, [&](parallel::Collectives& collectives) {
    const parallel::CollectivesGroup group(collectives, /*sequence_parallel=*/true);
    const at::Tensor own = own_part(logits, 1, group).clone().requires_grad_(true);
    const auto loss_of = [&](const at::Tensor& targets) {
      return vocabulary_parallel_cross_entropy(own, targets, {.targets = {.ignored = -100}},
                                               kClasses, group)
          .loss;
    };
    const at::Tensor loss = loss_of(target);
    EXPECT_TRUE(at::allclose(loss, wanted, 1e-12, 1e-12));
    loss.backward();
    EXPECT_TRUE(at::allclose(own.grad(), own_part(whole.grad(), 1, group), 1e-12, 1e-12));
    for (const int64_t wrong : {kClasses, int64_t{-1}}) {
      EXPECT_TRUE(std::isnan(loss_of(at::full({kRows}, wrong, at::kLong)).item<double>()));
    }
  });
}

}  // namespace
}  // namespace gallop::train

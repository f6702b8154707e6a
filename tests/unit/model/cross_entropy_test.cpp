// The losses' autograd functions against LibTorch's operators, and the GPT that leaves its last
// GEMM to them.
#include "gallop/model/functional/cross_entropy.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gallop/base/error.h"
#include "gallop/model/gpt.h"
#include "unit/model/cpu_autocast.h"

namespace gallop::model::functional {
namespace {

at::Tensor leaf(const at::Tensor& values) { return values.detach().clone().requires_grad_(); }

void expect_close(const at::Tensor& found, const at::Tensor& truth, double bound = 1e-5) {
  ASSERT_TRUE(found.defined());
  EXPECT_LE((found.to(at::kDouble) - truth.to(at::kDouble)).norm().item<double>(),
            bound * truth.to(at::kDouble).norm().item<double>());
}

TEST(CrossEntropyFunction, HasTheLibrarysValuesAndGradientsHoweverTheLogitsLie) {
  const LossOptions options{.targets = {.label_smoothing = 0.1}, .count_correct = true};
  const auto base = at::randn({3, 5, 18}), target = at::randint(18, {3, 5}, at::kLong);
  for (const auto& make :
       {+[](const at::Tensor& x) { return x * 1; }, +[](const at::Tensor& x) { return x.flip(1); },
        +[](const at::Tensor& x) { return x.transpose(0, 1).contiguous().transpose(0, 1); },
        +[](const at::Tensor& x) {
          return at::cat({x, x}, 2).narrow(2, 3, 18);
        }}) {
    const auto x = leaf(base), exact = leaf(base.to(at::kDouble));
    const auto found = cross_entropy(make(x), target, options);
    const auto truth = cross_entropy(make(exact), target, options);  // fp64: by LibTorch.
    expect_close(found.loss, truth.loss);
    EXPECT_TRUE(found.correct.equal(truth.correct));
    (found.loss * 3).backward();
    (truth.loss * 3).backward();
    expect_close(x.grad(), exact.grad());
  }
}

TEST(CrossEntropyFunction, TakesSharesAndGivesThemAGradientWhereWanted) {
  const auto shares = at::softmax(at::randn({4, 6}), 1);
  const auto x = leaf(at::randn({4, 6})), other = leaf(x), wanted = leaf(shares);
  const auto found = cross_entropy(x, shares, {}), by_library = cross_entropy(other, wanted, {});
  expect_close(found.loss, by_library.loss);
  found.loss.backward();
  by_library.loss.backward();
  expect_close(x.grad(), other.grad());
  EXPECT_TRUE(wanted.grad().defined());
}

TEST(CrossEntropyFunction, KeepsBf16LogitsAndTakesHalfOnesByTheLibrary) {
  const auto x = leaf(at::randn({4, 6}).to(at::kBFloat16)), target = at::randint(6, {4}, at::kLong);
  const auto found = cross_entropy(x, target, {});
  EXPECT_EQ(found.loss.scalar_type(), at::kFloat);
  found.loss.backward();
  EXPECT_EQ(x.grad().scalar_type(), at::kBFloat16);
  const auto half = leaf(at::randn({4, 6}).to(at::kHalf));
  cross_entropy(half, target, {}).loss.backward();
  EXPECT_EQ(half.grad().scalar_type(), at::kHalf);
  EXPECT_EQ(cross_entropy(at::empty({0, 6}), target.narrow(0, 0, 0), {}).loss.item<float>(), 0);
}

TEST(LinearCrossEntropyFunction, IsItsProductAndLossForFewAndManyLogits) {
  for (const int64_t classes : {30, 50'000}) {
    for (const bool bf16 : {false, true}) {
      const auto x = leaf(at::randn({5, 20, 16})), weight = leaf(at::randn({classes, 16}) * 0.2);
      const auto target = at::randint(classes, {5, 20}, at::kLong);
      const auto gradients = [&](const LossSum& sum) {
        return torch::autograd::grad({sum.loss * 0.5}, {x, weight});
      };
      std::vector<at::Tensor> found, truth;
      LossSum sum, apart;
      if (bf16) {
        const CpuAutocast autocast(at::kBFloat16);
        sum = cross_entropy(Output{x, weight}, target, {.count_correct = true});
        apart = cross_entropy(at::linear(x, weight), target, {.count_correct = true});
      } else {
        sum = cross_entropy(Output{x, weight}, target, {.count_correct = true});
        apart = cross_entropy(at::linear(x, weight), target, {.count_correct = true});
      }
      expect_close(sum.loss, apart.loss);
      EXPECT_TRUE(sum.correct.equal(apart.correct));
      found = gradients(sum);
      truth = gradients(apart);
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(found[i].scalar_type(), at::kFloat);
        expect_close(found[i], truth[i], bf16 ? 1e-2 : 1e-5);
      }
    }
  }
}

TEST(LinearCrossEntropyFunction, RefusesASecondBackward) {
  const auto x = leaf(at::randn({100, 8})), weight = leaf(at::randn({50'000, 8}));
  const auto target = at::randint(50'000, {100}, at::kLong);
  const auto loss = cross_entropy(Output{x, weight}, target, {}).loss;
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_THROW(loss.backward(), UsageError);
  // Without gradients to record, only the loss is computed.
  const at::NoGradGuard no_gradients;
  EXPECT_FALSE(cross_entropy(Output{x, weight}, target, {}).loss.requires_grad());
}

TEST(Losses, RefuseGradientsOfGradients) {
  const auto x = leaf(at::randn({4, 6})), target = at::randint(6, {4}, at::kLong);
  const auto loss = cross_entropy(x, target, {}).loss;
  EXPECT_THROW(torch::autograd::grad({loss}, {x}, {}, std::nullopt, /*create_graph=*/true),
               UsageError);
}

TEST(Gpt, LearnsTheSameFromItsHeadAsFromItsLogits) {
  const Task task{.kind = Task::Kind::kText, .classes = 70'000, .context = 32};
  for (const bool tied : {true, false}) {
    const auto model =
        make_gpt({.layers = 1, .width = 16, .heads = 2, .tied = tied}, task, /*weights=*/1);
    const auto input = at::randint(task.classes, {2, 32}, at::kLong);
    const auto target = at::randint(task.classes, {2, 32}, at::kLong);
    const auto gradients = [&](const LossSum& sum) {
      for (const auto& parameter : model->parameters()) parameter.tensor.mutable_grad().reset();
      sum.loss.backward();
      std::vector<at::Tensor> list;
      for (const auto& parameter : model->parameters()) list.push_back(parameter.tensor.grad());
      return list;
    };
    const auto from_head = gradients(cross_entropy(model->forward_to_head(input), target, {}));
    const auto from_logits = gradients(cross_entropy(model->forward(input), target, {}));
    for (size_t i = 0; i < from_head.size(); ++i) expect_close(from_head[i], from_logits[i], 1e-4);
  }
}

}  // namespace
}  // namespace gallop::model::functional

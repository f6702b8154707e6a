#include "gallop/model/frozen.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "gallop/model/mlp.h"
#include "unit/base/error_of.h"

namespace gallop::model {
namespace {

const Task kNumbers{.kind = Task::Kind::kNumbers, .classes = 3, .features = 4};

TEST(Freeze, MakesBuffersOfParameters) {
  const auto plain = make_mlp({.hidden = {5, 6}}, kNumbers, 1);
  const NamedTensors all = plain->parameters();
  const auto model =
      freeze(make_mlp({.hidden = {5, 6}}, kNumbers, 1), {"*.bias", all.front().name});
  const NamedTensors trained = model->parameters(), frozen = model->buffers();
  EXPECT_EQ(trained.size(), 2U);
  EXPECT_EQ(frozen.size(), 4U);
  EXPECT_TRUE(model->statistics().empty());

  const at::Tensor x = at::ones({2, 4}), y = model->forward(x);
  EXPECT_TRUE(y.equal(plain->forward(x)));
  y.mul(y).sum().backward();
  for (const NamedTensor& one : trained) EXPECT_TRUE(one.tensor.grad().defined()) << one.name;
  for (const NamedTensor& one : frozen) {
    EXPECT_FALSE(one.tensor.requires_grad()) << one.name;
    EXPECT_FALSE(one.tensor.grad().defined()) << one.name;
  }
}

TEST(Freeze, RejectsPatternsThatDoNotFit) {
  const auto error_with = [](const std::vector<std::string>& patterns) {
    return error_of([&] { freeze(make_mlp({.hidden = {5}}, kNumbers, 1), patterns); });
  };
  EXPECT_EQ(error_with({"*", "x"}).find("train.freeze: no parameter is named 'x'"), 0U)
      << error_with({"x"});
  EXPECT_EQ(error_with({"*"}).find("train.freeze: freezes all parameters"), 0U)
      << error_with({"*"});
}

}  // namespace
}  // namespace gallop::model

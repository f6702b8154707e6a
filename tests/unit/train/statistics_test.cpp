#include "gallop/train/statistics.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/model/mlp.h"
#include "gallop/model/module_model.h"
#include "gallop/model/resnet.h"
#include "unit/data/image_fields.h"

namespace gallop::train {
namespace {

/// Images 3 x 8 x 8 that all differ.
class Waves final : public data::Samples {
 public:
  explicit Waves(double scale = 1) : Samples(data::image_fields({3, 8, 8})), scale_(scale) {}
  int64_t size() const override { return 22; }
  bool fill(int64_t index, int64_t, const data::SampleRow& row, data::Scratch&) const override {
    for (int i = 0; i < 192; ++i) {
      row.as<float>(0)[i] =
          static_cast<float>(scale_ * std::sin(0.1 * i * static_cast<double>(index + 1)));
    }
    *row.as<int64_t>(1) = index % 3;
    return true;
  }

 private:
  double scale_;
};

const model::Task kTask{.channels = 3, .height = 8, .width = 8, .classes = 3};

at::Tensor buffer(const model::Model& model, const std::string& wanted) {
  for (const auto& [name, tensor] : model.buffers()) {
    if (name == wanted) return tensor;
  }
  ADD_FAILURE() << "no buffer " << wanted;
  return {};
}

StatisticsConfig config_of(int64_t batch) {
  return {.loader = {.batch = batch, .threads = 0}, .seed = 5};
}

class StatisticsOf : public testing::TestWithParam<double> {};

// Variances are up to 1e12.
TEST_P(StatisticsOf, AreTheMeansOfThoseOfTheBatches) {
  const at::NoGradGuard no_grad;
  const Waves waves(GetParam());
  const StopRequest stop;
  const auto model = make_resnet({.depth = 8}, kTask, 1);
  ASSERT_TRUE(recompute_statistics(*model, waves, config_of(8), stop));
  // Statistics of the first layer, from the batches of the first epoch: 8, 8 and 6 images.
  at::Tensor mean = at::zeros({16}, at::kDouble), variance = at::zeros({16}, at::kDouble);
  data::Loader loader(waves, {.batch = 8, .threads = 0, .one_epoch = true}, {.seed = 5});
  at::Tensor weight;
  for (const auto& [name, tensor] : model->parameters()) {
    if (name == "conv1.weight") weight = tensor;
  }
  while (const auto batch = loader.next()) {
    const at::Tensor x = at::conv2d(batch->input(), weight, {}, 1, 1).to(at::kDouble);
    const auto share = static_cast<double>(batch->size()) / 22;
    mean += share * x.mean({0, 2, 3});
    variance += share * x.var({0, 2, 3}, /*unbiased=*/true);
  }
  const double least = 1e-5 * GetParam();
  EXPECT_TRUE(at::allclose(buffer(*model, "bn1.running_mean").to(at::kDouble), mean, 1e-4, least));
  EXPECT_TRUE(
      at::allclose(buffer(*model, "bn1.running_var").to(at::kDouble), variance, 1e-4, least));
  // No batch was used for training.
  EXPECT_EQ(buffer(*model, "bn1.num_batches_tracked").item<int64_t>(), 0);
  EXPECT_TRUE(model->training());
}

INSTANTIATE_TEST_SUITE_P(Scales, StatisticsOf, testing::Values(1.0, 1e3, 1e6));

/// Passes its input through a layer of frozen statistics before those of a batch.
class PartlyFrozen final : public torch::nn::Module {
 public:
  PartlyFrozen() {
    frozen_mean_ = register_buffer("frozen_running_mean", at::full({3}, 0.5));
    mean_ = register_buffer("running_mean", at::zeros({3}));
    variance_ = register_buffer("running_var", at::ones({3}));
    register_parameter("weight", at::ones({3}));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor shifted = x - frozen_mean_.view({1, 3, 1, 1});
    return at::batch_norm(shifted, {}, {}, mean_, variance_, is_training(), 0.1, 1e-5, false)
        .mean({2, 3});
  }

 private:
  at::Tensor frozen_mean_, mean_, variance_;
};

TEST(Statistics, OfFrozenLayersKeepTheirValues) {
  const at::NoGradGuard no_grad;
  const Waves waves;
  const StopRequest stop;
  const auto model = model::model_of(std::make_shared<PartlyFrozen>());
  ASSERT_TRUE(recompute_statistics(*model, waves, config_of(22), stop));
  EXPECT_TRUE(at::equal(buffer(*model, "frozen_running_mean"), at::full({3}, 0.5)));
  data::Loader loader(waves, {.batch = 22, .threads = 0, .one_epoch = true}, {.seed = 5});
  const at::Tensor mean = loader.next()->input().mean({0, 2, 3}) - 0.5;
  EXPECT_TRUE(at::allclose(buffer(*model, "running_mean"), mean, 1e-4, 1e-5));
}

TEST(Statistics, DoNotDependOnWhatTheyWereBefore) {
  const at::NoGradGuard no_grad;
  const Waves waves;
  const StopRequest stop;
  const auto first = make_resnet({.depth = 8}, kTask, 1),
             second = make_resnet({.depth = 8}, kTask, 1);
  for (const auto& [name, tensor] : second->buffers()) {
    if (tensor.is_floating_point()) tensor.fill_(7);
  }
  for (const auto* model : {&first, &second}) {
    ASSERT_TRUE(recompute_statistics(**model, waves, config_of(5), stop));
  }
  for (size_t i = 0; i < first->buffers().size(); ++i) {
    EXPECT_TRUE(at::equal(first->buffers()[i].tensor, second->buffers()[i].tensor));
  }
}

TEST(Statistics, StayWhereTheyAreAtAStop) {
  const Waves waves;
  StopRequest stop;
  stop.request(-1);
  const auto model = make_resnet({.depth = 8}, kTask, 1),
             before = make_resnet({.depth = 8}, kTask, 1);
  EXPECT_FALSE(recompute_statistics(*model, waves, config_of(8), stop));
  for (size_t i = 0; i < model->buffers().size(); ++i) {
    EXPECT_TRUE(at::equal(model->buffers()[i].tensor, before->buffers()[i].tensor));
  }
}

TEST(Statistics, OfAModelWithoutAnyTakeNoSamples) {
  const Waves waves;
  StopRequest stop;
  stop.request(-1);
  const auto model = make_mlp({.hidden = {8}}, kTask, 1);
  EXPECT_TRUE(recompute_statistics(*model, waves, config_of(8), stop));
}

}  // namespace
}  // namespace gallop::train

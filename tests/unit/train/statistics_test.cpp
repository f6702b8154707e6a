#include "gallop/train/statistics.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "unit/data/image_fields.h"

namespace gallop::train {
namespace {

/// Images 3 x 8 x 8 that all differ.
class Waves final : public data::Samples {
 public:
  Waves() : Samples(data::image_fields({3, 8, 8})) {}
  int64_t size() const override { return 22; }
  bool fill(int64_t index, int64_t, const data::SampleRow& row, data::Scratch&) const override {
    for (int i = 0; i < 192; ++i) {
      row.as<float>(0)[i] = static_cast<float>(std::sin(0.1 * i * static_cast<double>(index + 1)));
    }
    *row.as<int64_t>(1) = index % 3;
    return true;
  }
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

TEST(Statistics, AreTheMeansOfThoseOfTheBatches) {
  const at::NoGradGuard no_grad;
  const Waves waves;
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
  EXPECT_TRUE(at::allclose(buffer(*model, "bn1.running_mean").to(at::kDouble), mean, 1e-4, 1e-5));
  EXPECT_TRUE(
      at::allclose(buffer(*model, "bn1.running_var").to(at::kDouble), variance, 1e-4, 1e-5));
  // No batch was used for training.
  EXPECT_EQ(buffer(*model, "bn1.num_batches_tracked").item<int64_t>(), 0);
  EXPECT_TRUE(model->training());
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

#include "gallop/train/evaluate.h"

#include <cmath>
#include <random>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/model/mlp.h"
#include "unit/data/image_fields.h"

namespace gallop::train {
namespace {

const model::Task kTask{.channels = 2, .height = 5, .width = 6, .classes = 7};
constexpr int64_t kImages = 23;

at::Tensor all_images() {
  const at::Tensor images = at::empty({kImages, 2, 5, 6});
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < images.numel(); ++i) images.mutable_data_ptr<float>()[i] = normal(random);
  return images;
}
at::Tensor all_targets() { return at::arange(kImages).remainder(7); }

class Images final : public data::Samples {
 public:
  Images() : Samples(data::image_fields({2, 5, 6})) {}
  int64_t size() const override { return kImages; }
  bool fill(int64_t index, int64_t, const data::SampleRow& row, data::Scratch&) const override {
    const at::Tensor image = images_[index];
    std::copy_n(image.const_data_ptr<float>(), image.numel(), row.as<float>(0));
    *row.as<int64_t>(1) = index % 7;
    return true;
  }

 private:
  at::Tensor images_ = all_images();
};

std::unique_ptr<model::Model> some_model(uint64_t seed) {
  return make_mlp({.hidden = {16}}, kTask, seed);
}

const StopRequest kGoOn;

EvaluateConfig batches_of(int64_t batch, TestViews views = {}) {
  return {.loader = {.batch = batch, .threads = 0}, .views = views};
}

void expect_tally(const Tally& found, const at::Tensor& probabilities) {
  const at::Tensor likely = probabilities.gather(1, all_targets().unsqueeze(1)).log();
  EXPECT_EQ(found.count, kImages);
  EXPECT_NEAR(found.loss_sum, -likely.sum().item<double>(), 1e-4);
  EXPECT_EQ(found.top1, probabilities.argmax(1).eq(all_targets()).sum().item<int64_t>());
}

// A shifted image, computed element by element.
at::Tensor moved(const at::Tensor& images, int64_t down, int64_t right) {
  const auto reflected = [](int64_t i, int64_t size) {
    if (i < 0) return -i;
    return i < size ? i : 2 * size - 2 - i;
  };
  const at::Tensor result = at::empty_like(images);
  for (int64_t y = 0; y < images.size(2); ++y) {
    for (int64_t x = 0; x < images.size(3); ++x) {
      result.select(2, y).select(2, x).copy_(images.select(2, reflected(y - down, images.size(2)))
                                                 .select(2, reflected(x - right, images.size(3))));
    }
  }
  return result;
}

TEST(TestViews, AreThoseOfTheFormula) {
  const at::Tensor images = all_images();
  const auto views = views_of(images, {.flip = true, .pixels = 2});
  const at::Tensor down = moved(images, 2, 2), up = moved(images, -2, -2);
  const std::vector<std::pair<at::Tensor, double>> wanted = {
      {images, 0.25},         {down, 0.125},         {up, 0.125},
      {images.flip(3), 0.25}, {down.flip(3), 0.125}, {up.flip(3), 0.125}};
  ASSERT_EQ(views.size(), wanted.size());
  for (size_t i = 0; i < views.size(); ++i) {
    EXPECT_TRUE(at::equal(views[i].images, wanted[i].first)) << i;
    EXPECT_EQ(views[i].weight, wanted[i].second);
  }
  EXPECT_EQ(views_of(images, {.flip = true}).size(), 2U);
  EXPECT_EQ(views_of(images, {.pixels = 1}).size(), 3U);
  for (const auto& view :
       views_of(images.contiguous(at::MemoryFormat::ChannelsLast), {.flip = true, .pixels = 1})) {
    EXPECT_TRUE(view.images.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

TEST(Evaluate, TakesTheMeanOfAllViews) {
  const auto model = some_model(1);
  const Images images;
  const at::Tensor x = all_images();
  const auto logits = [&](const at::Tensor& input) { return model->forward(input).detach(); };
  const at::Tensor flipped = (logits(x) + logits(x.flip(3))) / 2;
  at::Tensor all = flipped / 2;
  for (const at::Tensor& m : {moved(x, 1, 1), moved(x, -1, -1)}) {
    all = all + (logits(m) + logits(m.flip(3))) / 8;
  }
  for (const int64_t batch : {4, 23}) {
    const auto plain = evaluate(*model, images, batches_of(batch), kGoOn);
    expect_tally(plain->tally, logits(x).softmax(1));
    EXPECT_FALSE(plain->one_view);
    const auto some = evaluate(*model, images, batches_of(batch, {.flip = true}), kGoOn);
    expect_tally(some->tally, flipped.softmax(1));
    const auto most =
        evaluate(*model, images, batches_of(batch, {.flip = true, .pixels = 1}), kGoOn);
    expect_tally(most->tally, all.softmax(1));
    for (const auto& one : {some, most}) {
      ASSERT_TRUE(one->one_view);
      EXPECT_EQ(one->one_view->loss_sum, plain->tally.loss_sum);
      EXPECT_EQ(one->one_view->top1, plain->tally.top1);
      EXPECT_EQ(one->one_view->top5, plain->tally.top5);
    }
  }
  EXPECT_TRUE(model->training());
}

TEST(Evaluate, OfSeveralModelsTakesTheMeanOfTheirProbabilities) {
  const auto first = some_model(1), second = some_model(2), third = some_model(3);
  {
    const at::NoGradGuard no_grad;
    // So confident that the other probabilities are 0 in fp32.
    for (const auto& [name, tensor] : third->parameters()) tensor.mul_(30);
  }
  const Images images;
  const at::Tensor x = all_images();
  at::Tensor sum = at::zeros({kImages, 7}, at::kDouble);
  for (const auto* model : {&first, &second, &third}) {
    sum += (*model)->forward(x).detach().to(at::kDouble).softmax(1);
  }
  const auto found =
      evaluate_ensemble({{*first}, {*second}, {*third}}, images, batches_of(5), kGoOn);
  ASSERT_EQ(found->each.size(), 3U);
  expect_tally(found->ensemble.tally, sum / 3);
  const auto alone = evaluate(*second, images, batches_of(5), kGoOn);
  EXPECT_EQ(found->each[1].tally.loss_sum, alone->tally.loss_sum);
  EXPECT_EQ(found->each[1].tally.top1, alone->tally.top1);
}

TEST(Evaluate, EndsWhereItIsStopped) {
  StopRequest stop;
  stop.request(-1);
  EXPECT_FALSE(evaluate(*some_model(1), Images(), batches_of(5), stop));
}

std::string message_of(const TestConfig& config, const model::Task& task) {
  try {
    test_views(config, task);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

TEST(TestViews, AreRefusedWhereTheDataDoNotHaveThem) {
  const model::Task text{.kind = model::Task::Kind::kText, .classes = 5, .context = 8};
  EXPECT_NE(message_of({.tta = {"flip"}}, text).find("which the data are not"), std::string::npos);
  model::Task pixels = kTask;
  pixels.per_element = true;
  EXPECT_NE(message_of({.tta = {"flip"}}, pixels).find("one for each pixel"), std::string::npos);
  EXPECT_NE(message_of({.tta = {"translate"}, .tta_pixels = 5}, kTask).find("5x6"),
            std::string::npos);
  EXPECT_NE(message_of({.tta = {"flip", "flip"}}, kTask).find("more than once"), std::string::npos);
  EXPECT_NE(message_of({.tta_in_training = true}, kTask).find("has no views"), std::string::npos);
  EXPECT_FALSE(test_views({}, text).is_any());
  const TestViews both = test_views({.tta = {"translate", "flip"}, .tta_pixels = 4}, kTask);
  EXPECT_TRUE(both.flip);
  EXPECT_EQ(both.pixels, 4);
}

}  // namespace
}  // namespace gallop::train

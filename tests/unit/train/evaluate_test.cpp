#include "gallop/train/evaluate.h"

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
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

// Images of three sizes, the last of them damaged.
class RectangularImages final : public data::Samples {
 public:
  RectangularImages() : Samples(data::image_fields({3, 8, 24})) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < kImages; ++i) {
      images.push_back(at::empty({3, i % 3 == 1 ? 16 : 8, i % 3 == 2 ? 24 : 8}));
      at::Tensor& image = images.back();
      for (int64_t k = 0; k < image.numel(); ++k)
        image.mutable_data_ptr<float>()[k] = normal(random);
    }
  }
  int64_t size() const override { return kImages; }
  std::vector<int64_t> input_sizes(int64_t index) const override {
    return images[static_cast<size_t>(index)].sizes().vec();
  }
  bool fill(int64_t index, int64_t, const data::SampleRow& row, data::Scratch&) const override {
    if (index == kDamaged) return false;
    const at::Tensor& image = images[static_cast<size_t>(index)];
    std::copy_n(image.const_data_ptr<float>(), image.numel(), row.as<float>(0));
    *row.as<int64_t>(1) = index % 7;
    return true;
  }

  static constexpr int64_t kDamaged = 4;
  std::vector<at::Tensor> images;
};

TEST(Evaluate, PutsImagesOfOneSizeIntoABatch) {
  const auto model =
      make_resnet({.depth = 8, .width = 0.5},
                  {.channels = 3, .height = 8, .width = 8, .classes = 7}, model::InitialWeights(1));
  const RectangularImages samples;
  model->set_training(false);
  std::map<int64_t, at::Tensor> wanted;
  double loss = 0;
  {
    const at::NoGradGuard no_grad;
    for (int64_t i = 0; i < kImages; ++i) {
      if (i == RectangularImages::kDamaged) continue;
      wanted[i] = model->forward(samples.images[static_cast<size_t>(i)].unsqueeze(0))[0];
      loss -= wanted[i].to(at::kDouble).log_softmax(0)[i % 7].item<double>();
    }
  }
  for (const int64_t batch : {1, 3, 4, 23}) {
    EvaluateConfig config = batches_of(batch);
    std::set<int64_t> seen;
    config.see = [&](const data::Batch& one, const at::Tensor& outputs) {
      for (int64_t row = 0; row < one.rows(); ++row) {
        const int64_t index = one.position_of(row);
        EXPECT_TRUE(seen.insert(index).second);
        EXPECT_EQ(one.target()[row].item<int64_t>(), index % 7);
        EXPECT_TRUE(at::allclose(outputs[row], wanted[index], 1e-5, 1e-5)) << index;
      }
    };
    const auto evaluation = evaluate(*model, samples, config, kGoOn);
    EXPECT_EQ(seen.size(), wanted.size());
    EXPECT_EQ(evaluation->skipped, 1);
    EXPECT_EQ(evaluation->tally.count, kImages - 1);
    EXPECT_NEAR(evaluation->tally.loss_sum, loss, 1e-4);
  }
}

// Seven labels of each image.
class LabeledImages final : public data::Samples {
 public:
  LabeledImages()
      : Samples({{.name = "image", .shape = {.sizes = {2, 5, 6}}},
                 {.name = "target", .shape = {.sizes = {7}}}}) {}
  int64_t size() const override { return kImages; }
  bool fill(int64_t index, int64_t, const data::SampleRow& row, data::Scratch&) const override {
    const at::Tensor image = images_[index];
    std::copy_n(image.const_data_ptr<float>(), image.numel(), row.as<float>(0));
    for (int64_t i = 0; i < 7; ++i) row.as<float>(1)[i] = static_cast<float>((index + i) % 2);
    return true;
  }

 private:
  at::Tensor images_ = all_images();
};

EvaluateConfig for_labels(TestViews views = {}) {
  EvaluateConfig config = batches_of(5, views);
  static const MetricRegistry kMetrics = built_in_metrics();
  static const LossRegistry kLosses = built_in_losses();
  config.metrics = std::make_shared<const MetricSet>(
      kMetrics, MetricChoice(kMetrics),
      MetricTask{.target = MetricTask::Target::kLabels, .classes = 7});
  config.loss = build_loss(kLosses, config::Component(kLosses, "bce-with-logits"),
                           {.output_sizes = {7}, .target_sizes = {7}, .target_type = at::kFloat});
  return config;
}

// The mean loss of labels with these logits.
double loss_of_labels(const at::Tensor& logits) {
  const at::Tensor labels =
      at::arange(kImages).unsqueeze(1).add(at::arange(7)).remainder(2).to(at::kDouble);
  return at::binary_cross_entropy_with_logits(logits.to(at::kDouble), labels).item<double>();
}

TEST(Evaluate, OfLabelsTakesTheMeanOfAllViews) {
  const auto model = some_model(1);
  const LabeledImages images;
  const auto evaluation = evaluate(*model, images, for_labels({.flip = true}), kGoOn);
  EXPECT_FALSE(evaluation->one_view);
  const at::Tensor x = all_images();
  const at::Tensor mean = (model->forward(x) + model->forward(x.flip(3))) / 2;
  EXPECT_NEAR(evaluation->tally.loss(), loss_of_labels(mean), 1e-6);
}

std::shared_ptr<const Loss> loss_of_classes(const std::string& name) {
  static const LossRegistry kLosses = built_in_losses();
  return build_loss(kLosses, config::Component(kLosses, name),
                    {.output_sizes = {7}, .target_sizes = {}, .classes = 7});
}

TEST(Evaluate, HasTheChosenLossOfOneViewToo) {
  const auto model = some_model(1);
  EvaluateConfig config = batches_of(5), with_views = batches_of(5, {.flip = true});
  config.loss = with_views.loss = loss_of_classes("focal");
  const auto plain = evaluate(*model, Images(), config, kGoOn);
  const auto views = evaluate(*model, Images(), with_views, kGoOn);
  ASSERT_TRUE(views->one_view);
  EXPECT_NEAR(views->one_view->loss(), plain->tally.loss(), 1e-6);
  EXPECT_NE(views->tally.loss(), plain->tally.loss());
}

TEST(Evaluate, LeavesOutAnIgnoredClass) {
  const auto model = some_model(1);
  EvaluateConfig config = batches_of(5);
  config.ignored = 3;
  const auto found = evaluate(*model, Images(), config, kGoOn);
  const at::Tensor counts = all_targets().ne(3), x = all_images();
  const at::Tensor rows = model->forward(x).detach().log_softmax(1);
  const at::Tensor likely = rows.gather(1, all_targets().unsqueeze(1)).squeeze(1);
  EXPECT_EQ(found->tally.count, counts.sum().item<int64_t>());
  EXPECT_NEAR(found->tally.loss_sum, -likely.mul(counts).sum().item<double>(), 1e-4);
}

// Probabilities that are 1 in fp32 have no finite logit.
TEST(Evaluate, OfSeveralConfidentModelsOfLabelsIsFinite) {
  const auto first = some_model(1), second = some_model(2);
  const at::Tensor x = all_images();
  {
    const at::NoGradGuard no_grad;
    for (const auto* model : {&first, &second}) {
      for (const auto& [name, tensor] : (*model)->parameters()) tensor.mul_(40);
    }
  }
  const auto found = evaluate_ensemble({{*first}, {*second}}, LabeledImages(), for_labels(), kGoOn);
  const auto logits = [&](model::Model& model) {
    return model.forward(x).detach().to(at::kDouble);
  };
  const at::Tensor mean = (logits(*first).sigmoid() + logits(*second).sigmoid()) / 2;
  ASSERT_TRUE(mean.eq(1).any().item<bool>() || mean.eq(0).any().item<bool>());
  const auto log_mean = [&](double sign) {
    return at::logaddexp(at::log_sigmoid(sign * logits(*first)),
                         at::log_sigmoid(sign * logits(*second)));
  };
  const double wanted = loss_of_labels(log_mean(1) - log_mean(-1));
  EXPECT_NEAR(found->ensemble.tally.loss(), wanted, 1e-4 * wanted);
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

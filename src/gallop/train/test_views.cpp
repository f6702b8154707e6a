#include "gallop/train/test_views.h"

#include <algorithm>

#include <ATen/ops/reflection_pad2d.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::train {

namespace {

constexpr const char* kFlip = "flip";
constexpr const char* kTranslate = "translate";

std::string wrong_view(const std::string& name) {
  if (name == kFlip || name == kTranslate) return {};
  return fmt::format("unknown view '{}'. Known: flip and translate", printable(name));
}

}  // namespace

void visit(config::Visitor& v, TestConfig& c) {
  v.field({.name = "tta",
           .help = "test-time augmentation: views whose logits are averaged: [flip, translate]",
           .check = wrong_view},
          c.tta);
  v.field({.name = "tta_pixels", .help = "shift of translate in pixels", .min = 1}, c.tta_pixels);
  v.field({.name = "tta_in_training",
           .help = "use test-time augmentation in evaluations during training, too"},
          c.tta_in_training);
}

void check(const TestConfig& config) {
  const bool translates =
      std::find(config.tta.begin(), config.tta.end(), kTranslate) != config.tta.end();
  if (translates || config.tta_pixels == TestConfig().tta_pixels) return;
  throw UsageError(fmt::format(
      "evaluate.tta_pixels={} is how far translate moves an image, and evaluate.tta has no "
      "translate; give evaluate.tta=[translate], or leave tta_pixels out",
      config.tta_pixels));
}

TestViews test_views(const TestConfig& config, const model::Task& task) {
  const auto times = [&](const char* name) {
    return std::count(config.tta.begin(), config.tta.end(), name);
  };
  for (const char* name : {kFlip, kTranslate}) {
    if (times(name) > 1) throw UsageError(fmt::format("evaluate.tta has {} more than once", name));
  }
  TestViews views{.flip = times(kFlip) > 0};
  if (times(kTranslate) > 0) views.pixels = config.tta_pixels;
  if (!views.is_any()) {
    if (!config.tta_in_training) return views;
    throw UsageError(
        "evaluate.tta_in_training is true, but evaluate.tta has no views; give it [flip]");
  }
  if (task.kind != model::Task::Kind::kImages) {
    throw UsageError("evaluate.tta is for images, which the data are not; set it to []");
  }
  if (task.views > 1) {
    throw UsageError(
        "evaluate.tta averages the logits of an image, but the task of these data has embeddings; "
        "set it to []");
  }
  if (task.sequences) {
    throw UsageError(
        "evaluate.tta averages one prediction for each image, but the task of these data has "
        "sequences; set it to []");
  }
  if (task.is_per_element()) {
    throw UsageError(
        "evaluate.tta averages one prediction for each image, but the task of these data has one "
        "for each pixel; set it to []");
  }
  if (views.pixels >= std::min(task.height, task.width)) {
    throw UsageError(
        fmt::format("evaluate.tta_pixels: images of {}x{} cannot be moved by {} pixels",
                    task.height, task.width, views.pixels));
  }
  return views;
}

std::vector<View> views_of(const at::Tensor& images, const TestViews& views) {
  const bool last = images.is_contiguous(at::MemoryFormat::ChannelsLast) && !images.is_contiguous();
  const auto laid_out = [&](const at::Tensor& view) {
    return view.contiguous(last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  };
  std::vector<View> all = {{images}};
  if (views.pixels > 0) {
    const int64_t by = views.pixels, height = images.size(2), width = images.size(3);
    const at::Tensor padded = at::reflection_pad2d(images, {by, by, by, by});
    all.front().weight = 0.5;
    for (const int64_t from : {int64_t{0}, 2 * by}) {
      all.push_back(
          {laid_out(padded.narrow(2, from, height).narrow(3, from, width)), /*weight=*/0.25});
    }
  }
  if (!views.flip) return all;
  const size_t count = all.size();
  for (size_t i = 0; i < count; ++i) {
    all[i].weight /= 2;
    all.push_back({laid_out(all[i].images.flip({3})), all[i].weight});
  }
  return all;
}

}  // namespace gallop::train

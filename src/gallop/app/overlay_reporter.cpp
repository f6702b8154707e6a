#include "gallop/app/overlay_reporter.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <ATen/ops/argmax.h>
#include <fmt/format.h>

#include "gallop/app/batch_images.h"
#include "gallop/data/mask_overlay.h"
#include "gallop/data/png_writer.h"

namespace gallop::app {

namespace {

constexpr size_t kFirst = 4, kLowest = 4;
constexpr int kMostPixels = 320;  // Per side.

std::vector<int64_t> labels_of(const at::Tensor& mask) {
  const at::Tensor plain = mask.to(at::kLong).contiguous();
  const int64_t* const labels = plain.const_data_ptr<int64_t>();
  return {labels, labels + plain.numel()};
}

std::string text_of(const data::Rgb& color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color[0], color[1], color[2]);
}

}  // namespace

bool OverlayReporter::fits(const data::Signature& inputs, const train::Task& task) {
  return inputs.is_images() && task.report.images == train::Report::Images::kMasks;
}

void OverlayReporter::add(const data::Batch& batch, const at::Tensor& logits) {
  const at::Tensor predicted = at::argmax(logits, 1).cpu(), truth = batch.target().cpu();
  for (int64_t i = 0; i < predicted.size(0); ++i) {
    Kept one{.position = batch.position_of(i),
             .image = {},
             .predicted = labels_of(predicted[i]),
             .truth = labels_of(truth[i])};
    one.iou = data::image_iou(one.predicted, one.truth, inputs_.classes.size());
    const bool is_low = one.iou && (lowest_.size() < kLowest || *one.iou < *lowest_.back().iou);
    const bool is_first = first_.size() < kFirst;
    if (!is_first && !is_low) continue;
    one.image = image_of(batch.input()[i], inputs_);
    if (is_low) keep_lowest(one);
    if (is_first) first_.push_back(std::move(one));
  }
}

void OverlayReporter::keep_lowest(const Kept& one) {
  const auto is_before = [](const Kept& a, const Kept& b) {
    return std::tie(*a.iou, a.position) < std::tie(*b.iou, b.position);
  };
  lowest_.insert(std::upper_bound(lowest_.begin(), lowest_.end(), one, is_before), one);
  if (lowest_.size() > kLowest) lowest_.pop_back();
}

std::vector<track::EvaluationReport::Overlay> OverlayReporter::write_images(
    const fs::path& folder) const {
  using Group = track::EvaluationReport::Overlay::Group;
  std::vector<track::EvaluationReport::Overlay> written;
  int64_t files = 0;
  const auto write = [&](const data::Image& image) {
    const std::string name = fmt::format("{:02}.png", files++);
    write_file_atomically(folder / name, data::encode_png(data::reduced_image(image, kMostPixels)));
    return name;
  };
  for (const auto& [group, kept] :
       {std::pair(Group::kFirst, &first_), {Group::kLowest, &lowest_}}) {
    for (const Kept& one : *kept) {
      written.push_back(
          {.group = group,
           .sample = one.position,
           .iou = one.iou,
           .image = write(one.image),
           .truth = write(data::overlay_classes(one.image, one.truth)),
           .prediction = write(data::overlay_classes(one.image, one.predicted)),
           .differences = write(data::overlay_differences(one.image, one.predicted, one.truth))});
    }
  }
  return written;
}

std::vector<std::string> overlay_colors(const data::Signature& inputs) {
  std::vector<std::string> colors;
  for (size_t i = 0; i < inputs.classes.size(); ++i) {
    colors.push_back(text_of(data::class_color(i)));
  }
  return colors;
}

std::string difference_color() { return text_of(data::kDifferenceColor); }

}  // namespace gallop::app

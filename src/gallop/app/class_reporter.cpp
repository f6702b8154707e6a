#include "gallop/app/class_reporter.h"

#include <algorithm>
#include <tuple>

#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include "gallop/app/batch_images.h"
#include "gallop/data/png_writer.h"
#include "gallop/data/text_samples.h"

namespace gallop::app {

namespace {

constexpr size_t kMostMistakes = 60;

}  // namespace

bool ClassReporter::fits(const data::Signature& inputs, const train::Task& task) {
  return inputs.is_images() && task.report.images == train::Report::Images::kMistakes;
}

void ClassReporter::add(const data::Batch& batch, const at::Tensor& logits) {
  const at::Tensor probabilities = at::softmax(logits.to(at::kFloat), -1).cpu();
  const at::Tensor guesses = at::argmax(probabilities, -1);
  const at::Tensor truths = batch.target().to(at::kLong).cpu();
  for (int64_t i = 0; i < truths.size(0); ++i) {
    Mistake mistake;
    mistake.position = batch.position_of(i);
    mistake.truth = truths[i].item<int64_t>();
    mistake.guess = guesses[i].item<int64_t>();
    if (mistake.truth == mistake.guess || mistake.truth == data::kIgnoredTarget) continue;
    mistake.probability = probabilities[i][mistake.guess].item<double>();
    keep(std::move(mistake), batch.input()[i]);
  }
}

void ClassReporter::keep(Mistake mistake, const at::Tensor& image) {
  const auto is_before = [](const Mistake& a, const Mistake& b) {
    return std::tie(b.probability, a.position) < std::tie(a.probability, b.position);
  };
  if (mistakes_.size() == kMostMistakes && !is_before(mistake, mistakes_.back())) return;
  mistake.image = image_of(image, inputs_);
  const auto place = std::upper_bound(mistakes_.begin(), mistakes_.end(), mistake, is_before);
  mistakes_.insert(place, std::move(mistake));
  if (mistakes_.size() > kMostMistakes) mistakes_.pop_back();
}

std::vector<track::EvaluationReport::Mistake> ClassReporter::write_images(
    const fs::path& folder) const {
  std::vector<track::EvaluationReport::Mistake> written;
  for (const Mistake& mistake : mistakes_) {
    const std::string name = fmt::format("{:02}.png", written.size());
    write_file_atomically(folder / name, data::encode_png(mistake.image));
    written.push_back({.image = name,
                       .width = mistake.image.width,
                       .height = mistake.image.height,
                       .channels = mistake.image.channels,
                       .truth = mistake.truth,
                       .guess = mistake.guess,
                       .probability = mistake.probability});
  }
  return written;
}

}  // namespace gallop::app

#include "gallop/app/class_reporter.h"

#include <algorithm>
#include <numeric>
#include <system_error>
#include <tuple>

#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include "gallop/app/batch_images.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/png_writer.h"
#include "gallop/track/class_report.h"

namespace gallop::app {

namespace {

constexpr size_t kMostMistakes = 60;
constexpr size_t kToldClasses = 3, kToldMistakes = 5;

}  // namespace

ClassReporter::ClassReporter(const data::Signature& inputs) : inputs_(inputs) {
  const size_t classes = inputs.classes.size();
  if (!inputs.is_images() || inputs.task != "classification") {
    throw UsageError("a report is of classes of images, which this run does not know");
  }
  counts_.assign(classes, std::vector<int64_t>(classes));
}

void ClassReporter::add(const data::Batch& batch, const at::Tensor& logits) {
  const at::Tensor probabilities = at::softmax(logits.to(at::kFloat), -1).cpu();
  const at::Tensor guesses = at::argmax(probabilities, -1);
  const at::Tensor truths = batch.target().to(at::kLong).cpu();
  for (int64_t i = 0; i < truths.size(0); ++i) {
    Mistake mistake;
    mistake.position = batch.position + i;
    mistake.truth = truths[i].item<int64_t>();
    mistake.guess = guesses[i].item<int64_t>();
    ++counts_[static_cast<size_t>(mistake.truth)][static_cast<size_t>(mistake.guess)];
    if (mistake.truth == mistake.guess) continue;
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

void ClassReporter::write(const fs::path& run, int64_t step, const std::string& part) const {
  const fs::path folder = track::class_report_of(run);
  std::error_code ignored;
  fs::remove_all(folder, ignored);  // So that no report speaks of others' images.
  make_folders(folder);
  track::ClassReport report{
      .step = step, .part = part, .classes = inputs_.classes, .counts = counts_, .mistakes = {}};
  for (const Mistake& mistake : mistakes_) {
    const std::string name = fmt::format("{:02}.png", report.mistakes.size());
    write_file_atomically(folder / name, data::encode_png(mistake.image));
    report.mistakes.push_back({.image = name,
                               .width = mistake.image.width,
                               .height = mistake.image.height,
                               .channels = mistake.image.channels,
                               .truth = mistake.truth,
                               .guess = mistake.guess,
                               .probability = mistake.probability});
  }
  track::write_class_report(run, report);
}

std::string ClassReporter::text() const {
  struct Found {
    size_t truth;
    double share;
  };
  struct Taken {
    size_t truth, guess;
    int64_t count;
  };
  std::vector<Found> found;
  std::vector<Taken> taken;
  for (size_t truth = 0; truth < counts_.size(); ++truth) {
    const auto& row = counts_[truth];
    const auto all = std::accumulate(row.begin(), row.end(), int64_t{0});
    if (all == 0) continue;
    found.push_back({truth, static_cast<double>(row[truth]) / static_cast<double>(all)});
    for (size_t guess = 0; guess < row.size(); ++guess) {
      if (guess != truth && row[guess] > 0) taken.push_back({truth, guess, row[guess]});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.share < b.share; });
  std::stable_sort(taken.begin(), taken.end(),
                   [](const Taken& a, const Taken& b) { return a.count > b.count; });
  std::string text;
  for (size_t i = 0; i < std::min(kToldClasses, found.size()); ++i) {
    text += fmt::format("  {}{}: {:.2f} % are found\n", i == 0 ? "hardest   " : "          ",
                        printable(name_of(found[i].truth)), 100 * found[i].share);
  }
  for (size_t i = 0; i < std::min(kToldMistakes, taken.size()); ++i) {
    text += fmt::format("  {}{} taken for {}: {}\n", i == 0 ? "mistaken  " : "          ",
                        printable(name_of(taken[i].truth)), printable(name_of(taken[i].guess)),
                        format_count(taken[i].count));
  }
  return text;
}

}  // namespace gallop::app

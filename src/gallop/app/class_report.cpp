#include "gallop/app/class_report.h"

#include <algorithm>
#include <cmath>
#include <system_error>
#include <tuple>

#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/json_numbers.h"
#include "gallop/data/png_writer.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostMistakes = 60;
constexpr size_t kToldClasses = 3, kToldMistakes = 5;

// The image in a row [C, H, W] of a batch, as it was before it was normalized.
data::Image image_of(const at::Tensor& row, const RunInputs& inputs) {
  const at::Tensor plain = row.to(at::kFloat).cpu().permute({1, 2, 0}).contiguous();
  data::Image image;
  image.height = static_cast<int>(plain.size(0));
  image.width = static_cast<int>(plain.size(1));
  image.channels = static_cast<int>(plain.size(2));
  const auto channels = static_cast<size_t>(image.channels);
  const float* const values = plain.const_data_ptr<float>();
  image.pixels.resize(static_cast<size_t>(plain.numel()));
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const double value = values[i] * inputs.deviation[i % channels] + inputs.mean[i % channels];
    image.pixels[i] = static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
  }
  return image;
}

std::string picture_name(size_t index) { return fmt::format("{:02}.png", index); }

}  // namespace

ClassReport::ClassReport(const RunInputs& inputs)
    : inputs_(inputs), classes_(static_cast<int64_t>(inputs.classes.size())) {
  if (inputs.kind != "images" || classes_ == 0) {
    throw UsageError("a report is of classes of images, which this run does not know");
  }
  counts_.resize(static_cast<size_t>(classes_ * classes_));
}

int64_t ClassReport::count(int64_t truth, int64_t guess) const {
  return counts_[static_cast<size_t>(truth * classes_ + guess)];
}

const std::string& ClassReport::name_of(int64_t label) const {
  return inputs_.classes[static_cast<size_t>(label)];
}

void ClassReport::add(const data::Batch& batch, const at::Tensor& logits) {
  const at::Tensor probabilities = at::softmax(logits.to(at::kFloat), -1).cpu();
  const at::Tensor guesses = at::argmax(probabilities, -1);
  const at::Tensor truths = batch.target.to(at::kLong).cpu();
  for (int64_t i = 0; i < truths.size(0); ++i) {
    const auto truth = truths[i].item<int64_t>(), guess = guesses[i].item<int64_t>();
    ++counts_[static_cast<size_t>(truth * classes_ + guess)];
  }
  add_mistakes(batch, probabilities, guesses);
}

void ClassReport::add_mistakes(const data::Batch& batch, const at::Tensor& probabilities,
                               const at::Tensor& guesses) {
  const auto is_before = [](const Mistake& a, const Mistake& b) {
    return std::tie(b.probability, a.position) < std::tie(a.probability, b.position);
  };
  for (int64_t i = 0; i < guesses.size(0); ++i) {
    Mistake mistake;
    mistake.position = batch.position + i;
    mistake.truth = batch.target[i].item<int64_t>();
    mistake.guess = guesses[i].item<int64_t>();
    if (mistake.truth == mistake.guess) continue;
    mistake.probability = probabilities[i][mistake.guess].item<double>();
    if (mistakes_.size() == kMostMistakes && !is_before(mistake, mistakes_.back())) continue;
    mistake.image = image_of(batch.input[i], inputs_);
    const auto place = std::upper_bound(mistakes_.begin(), mistakes_.end(), mistake, is_before);
    mistakes_.insert(place, std::move(mistake));
    if (mistakes_.size() > kMostMistakes) mistakes_.pop_back();
  }
}

void ClassReport::write(const fs::path& folder, int64_t step, const std::string& part) const {
  make_folders(folder);
  std::error_code ignored;
  fs::remove(folder / "report.json", ignored);  // So that none speaks of others' images.
  Json mistakes = Json::array();
  for (size_t i = 0; i < mistakes_.size(); ++i) {
    const Mistake& mistake = mistakes_[i];
    write_file_atomically(folder / picture_name(i), data::encode_png(mistake.image));
    mistakes.push_back({{"image", picture_name(i)},
                        {"truth", mistake.truth},
                        {"guess", mistake.guess},
                        {"probability", config::number_json(mistake.probability)}});
  }
  for (size_t i = mistakes_.size(); i < kMostMistakes; ++i) {
    fs::remove(folder / picture_name(i), ignored);
  }
  Json rows = Json::array();
  for (int64_t truth = 0; truth < classes_; ++truth) {
    Json row = Json::array();
    for (int64_t guess = 0; guess < classes_; ++guess) row.push_back(count(truth, guess));
    rows.push_back(std::move(row));
  }
  const Json report{{"step", step},
                    {"part", part},
                    {"classes", inputs_.classes},
                    {"counts", std::move(rows)},
                    {"mistakes", std::move(mistakes)}};
  write_file_atomically(folder / "report.json",
                        report.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string ClassReport::text() const {
  struct Found {
    int64_t truth;
    double share;
  };
  struct Taken {
    int64_t truth, guess, count;
  };
  std::vector<Found> found;
  std::vector<Taken> taken;
  for (int64_t truth = 0; truth < classes_; ++truth) {
    int64_t all = 0;
    for (int64_t guess = 0; guess < classes_; ++guess) {
      all += count(truth, guess);
      if (guess != truth && count(truth, guess) > 0) {
        taken.push_back({truth, guess, count(truth, guess)});
      }
    }
    if (all > 0) {
      found.push_back({truth, static_cast<double>(count(truth, truth)) / static_cast<double>(all)});
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

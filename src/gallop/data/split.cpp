#include "gallop/data/split.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"

namespace gallop::data {

namespace {

void shuffle(std::vector<int64_t>& values, Philox random) {
  for (size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[random.below(left)]);
  }
}

[[noreturn]] void throw_empty(double fraction, int64_t size) {
  throw DataError(fmt::format(
      "data.validation={} of {} training samples leaves one side empty; choose another part",
      fraction, size));
}

void cut_images(Parts& parts, double fraction, uint64_t seed) {
  const std::shared_ptr<const ImageSet> images = std::move(parts.train_images);
  std::vector<int64_t> labels(static_cast<size_t>(images->size()));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = images->label(static_cast<int64_t>(i));
  Cut cut = cut_by_class(labels, static_cast<int64_t>(images->class_names().size()), fraction, seed);
  if (cut.held_back.empty() || cut.kept.empty()) throw_empty(fraction, images->size());
  parts.train_images = std::make_unique<SubsetImages>(images, std::move(cut.kept));
  parts.validation_images = std::make_unique<SubsetImages>(images, std::move(cut.held_back));
}

void cut_text(Parts& parts, double fraction) {
  auto& tokens = parts.train_text->tokens;
  const auto size = static_cast<int64_t>(tokens.size());
  const auto kept = std::llround(static_cast<double>(size) * (1 - fraction));
  if (kept < 1 || kept >= size) throw_empty(fraction, size);
  parts.validation_text = std::make_unique<TextSet>();
  parts.validation_text->vocabulary = parts.train_text->vocabulary;
  parts.validation_text->tokens.assign(tokens.begin() + kept, tokens.end());
  tokens.resize(static_cast<size_t>(kept));
}

}  // namespace

Cut cut_by_class(const std::vector<int64_t>& labels, int64_t classes, double fraction,
                 uint64_t seed) {
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(classes));
  for (size_t i = 0; i < labels.size(); ++i) {
    members[static_cast<size_t>(labels[i])].push_back(static_cast<int64_t>(i));
  }
  Cut cut;
  for (size_t label = 0; label < members.size(); ++label) {
    auto& images = members[label];
    if (images.empty()) continue;
    shuffle(images, Philox(seed, Purpose::kSplit, 0, label));
    const auto wanted = std::llround(static_cast<double>(images.size()) * fraction);
    const auto held_back = std::min<int64_t>(wanted, static_cast<int64_t>(images.size()) - 1);
    cut.held_back.insert(cut.held_back.end(), images.begin(), images.begin() + held_back);
    cut.kept.insert(cut.kept.end(), images.begin() + held_back, images.end());
  }
  std::sort(cut.kept.begin(), cut.kept.end());
  std::sort(cut.held_back.begin(), cut.held_back.end());
  return cut;
}

void hold_back_validation(Parts& parts, double fraction, uint64_t seed) {
  if (fraction <= 0) return;
  if (parts.train_images && !parts.validation_images) cut_images(parts, fraction, seed);
  if (parts.train_text && !parts.validation_text) cut_text(parts, fraction);
}

}  // namespace gallop::data

#include "gallop/data/exclusion.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/find.h"
#include "gallop/data/split.h"
#include "gallop/data/text_lines.h"

namespace gallop::data {

namespace {

constexpr int64_t kMaxFile = int64_t{1} << 30;
constexpr size_t kMostNamed = 3;

// "'a', 'b' and 7 more"
std::string some(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) {
    shown.push_back(fmt::format("'{}'", printable(names[i])));
  }
  if (names.size() > kMostNamed) shown.push_back(fmt::format("{} more", names.size() - kMostNamed));
  return join_names(shown, "and");
}

}  // namespace

bool is_name_file(const std::string& item) { return item.ends_with(".txt"); }

std::vector<std::string> excluded_names(const std::vector<std::string>& items) {
  std::vector<std::string> names;
  for (const std::string& item : items) {
    if (!is_name_file(item)) {
      names.push_back(item);
      continue;
    }
    std::string text;
    try {
      text = read_file(absolute_data_path(item), kMaxFile);
    } catch (const DataError& error) {
      throw DataError(fmt::format("data.exclude: {}", error.what()));
    }
    Lines lines(text);
    while (const auto line = lines.next()) {
      if (!is_blank(*line) && !line->starts_with("# ")) names.emplace_back(*line);
    }
  }
  return names;
}

Exclusion::Exclusion(const std::vector<std::string>& items) {
  for (std::string& name : excluded_names(items)) found_.emplace(std::move(name), Found());
}

std::vector<int64_t> Exclusion::keep(Part part, int64_t size,
                                     const std::function<std::string(int64_t)>& describe) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < size; ++i) {
    const std::string whole = describe(i);
    if (example_.empty()) example_ = whole;
    bool is_excluded = false;
    for (std::string_view name = whole; !name.empty();) {
      if (const auto found = found_.find(name); found != found_.end()) {
        is_excluded = true;
        (found->second.samples++ == 0 ? found->second.first : found->second.second) = whole;
      }
      const size_t slash = name.find('/');
      name = slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
    }
    if (!is_excluded) kept.push_back(i);
  }
  counts_[static_cast<size_t>(part)] = {.samples = size,
                                        .excluded = size - static_cast<int64_t>(kept.size())};
  return kept;
}

std::string Exclusion::finish() const {
  std::vector<std::string> unknown;
  for (const auto& [name, found] : found_) {
    if (found.samples == 0) unknown.push_back(name);
    if (found.samples < 2) continue;
    throw UsageError(fmt::format(
        "data.exclude: {} samples are called '{}', such as '{}' and '{}'; give more of the name",
        found.samples, printable(name), printable(found.first), printable(found.second)));
  }
  if (!unknown.empty()) {
    throw UsageError(
        fmt::format("data.exclude: no sample is called {}; the first sample's name is '{}'",
                    some(unknown), printable(example_)));
  }
  std::vector<std::string> excluded;
  int64_t total = 0;
  for (size_t i = 0; i < kParts; ++i) {
    const Count& count = counts_[i];
    if (count.excluded == 0) continue;
    total += count.excluded;
    if (count.excluded == count.samples) {
      throw DataError(fmt::format("data.exclude leaves no sample of the {} split", kPartNames[i]));
    }
    excluded.push_back(
        fmt::format("{} {}", format_count(count.excluded), i == 0 ? "training" : kPartNames[i]));
  }
  return fmt::format("{} {} left out (data.exclude)", join_names(excluded, "and"),
                     total == 1 ? "sample is" : "samples are");
}

void exclude_images(ImageParts& parts, const std::vector<std::string>& items) {
  Exclusion exclusion(items);
  if (exclusion.empty()) return;
  std::unique_ptr<ImageSet>* const sets[kParts] = {&parts.train, &parts.validation, &parts.test};
  for (size_t i = 0; i < kParts; ++i) {
    if (*sets[i] == nullptr) continue;
    std::shared_ptr<const ImageSet> whole = std::move(*sets[i]);
    auto kept = exclusion.keep(static_cast<Part>(i), whole->size(),
                               [&](int64_t index) { return whole->describe(index); });
    *sets[i] = std::make_unique<SubsetImages>(std::move(whole), std::move(kept));
  }
  parts.notes.push_back(exclusion.finish());
}

void exclude_samples(DataModule& module, const std::vector<std::string>& items) {
  Exclusion exclusion(items);
  if (exclusion.empty()) return;
  if (module.signature.is_text() && !module.signature.separate_texts) {
    throw UsageError("data.exclude names samples, and windows of running text have no names");
  }
  for (size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    const Samples* const plain = module.split(part);
    if (plain == nullptr) continue;
    const std::vector<int64_t> kept =
        exclusion.keep(part, plain->size(), [&](int64_t index) { return plain->describe(index); });
    const auto cut = [&](std::unique_ptr<Samples>& samples) {
      if (samples) samples = std::make_unique<SubsetSamples>(std::move(samples), kept);
    };
    cut(part == Part::kTrain        ? module.train
        : part == Part::kValidation ? module.validation
                                    : module.test);
    if (part == Part::kTrain) cut(module.unaugmented);
  }
  module.notes.push_back(exclusion.finish());
}

}  // namespace gallop::data

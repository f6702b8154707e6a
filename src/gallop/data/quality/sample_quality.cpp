#include "gallop/data/quality/sample_quality.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/data/batch_slot.h"
#include "gallop/data/quality/duplicate_findings.h"
#include "gallop/data/sampling.h"
#include "gallop/data/view_names.h"

namespace gallop::data {

namespace {

struct Place {
  Part part = Part::kTrain;
  int64_t index = 0;
};

// Hashes the fields of samples.
class SampleHasher {
 public:
  explicit SampleHasher(const Samples& samples)
      : samples_(samples), scratch_(samples.make_scratch()) {
    for (const Field& field : samples.fields()) {
      buffers_.push_back(make_rows(field, 1, /*pinned=*/false));
      rows_.push_back(buffers_.back().row(0));
    }
    lengths_.resize(rows_.size());
  }

  // False if the sample is damaged. Targets that are no labels are part of the input: equal inputs
  // with other numbers are no contradiction.
  bool hash(int64_t index, bool has_labels, uint64_t& out) {
    for (size_t i = 0; i < buffers_.size(); ++i) lengths_[i] = full_length(i);
    if (!samples_.fill(index, /*epoch=*/0, SampleRow(rows_, lengths_), *scratch_)) return false;
    std::string input;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const std::string_view bytes = bytes_of(i);
      if (has_labels && i == samples_.fields().target_index()) continue;
      input += fmt::format("{} ", bytes.size());
      input += bytes;
    }
    out = xxh3_64(input);
    return true;
  }

 private:
  int64_t full_length(size_t field) const {
    const auto& sizes = samples_.fields()[field].shape.sizes;
    return sizes.empty() ? 1 : sizes[0];
  }
  std::string_view bytes_of(size_t field) const {
    const BatchRows& buffer = buffers_[field];
    const int64_t bytes =
        buffer.is_ragged() ? lengths_[field] * buffer.item_bytes : buffer.row_bytes;
    return {buffer.row(0), static_cast<size_t>(bytes)};
  }

  const Samples& samples_;
  std::unique_ptr<Scratch> scratch_;
  std::vector<BatchRows> buffers_;
  std::vector<void*> rows_;
  std::vector<int64_t> lengths_;
};

bool has_labels(const Samples& samples) {
  const RowShape& target = samples.fields().target().shape;
  return target.sizes.empty() && target.dtype == c10::ScalarType::Long;
}

}  // namespace

DataQuality check_samples(const DataModule& module) {
  const Signature& signature = module.signature;
  DataQuality quality{.notes = module.notes};
  if (signature.is_text() && !signature.separate_texts) {
    throw UsageError(
        "--report compares samples, and these data are running text, which has none; it is for "
        "images, tables and separate texts");
  }
  if (signature.is_text()) quality.unit = signature.text_samples();
  if (signature.is_numbers()) quality.unit = "rows";
  if (!signature.is_text() && signature.views > 1) quality.unit = name_of_views(signature.views);
  const auto classes = static_cast<int64_t>(signature.classes.size());
  std::vector<Place> places;
  std::vector<uint64_t> hashes;
  std::vector<std::string> descriptions;
  std::vector<std::vector<int64_t>> labels(kParts);
  for (size_t i = 0; i < kParts; ++i) {
    const Samples* const samples = module.split(static_cast<Part>(i));
    if (samples == nullptr) continue;
    quality.splits.emplace_back(kPartNames[i], samples->size());
    if (classes > 0 && has_labels(*samples)) labels[i] = class_labels(*samples, classes);
    SampleHasher hasher(*samples);
    for (int64_t index = 0; index < samples->size(); ++index) {
      uint64_t hash = 0;
      if (!hasher.hash(index, !labels[i].empty(), hash)) continue;
      hashes.push_back(hash);
      places.push_back({.part = static_cast<Part>(i), .index = index});
      descriptions.push_back(samples->describe(index));
    }
  }
  quality.checks = {"duplicates", "leakage", "conflicting labels"};
  const SampleNames names(descriptions);
  const auto describe = [&](int64_t i) {
    const Place& one = places[static_cast<size_t>(i)];
    const auto& of_part = labels[static_cast<size_t>(one.part)];
    FoundSample sample{.part = one.part,
                       .name = names.shorten(descriptions[static_cast<size_t>(i)])};
    const int64_t label = of_part.empty() ? -1 : of_part[static_cast<size_t>(one.index)];
    if (label >= 0) sample.label = signature.classes[static_cast<size_t>(label)];
    return sample;
  };
  std::vector<Part> parts;
  for (const Place& one : places) parts.push_back(one.part);
  add_duplicates(group_duplicates(parts, hashes, {}), describe, quality);
  if (!labels[0].empty()) {
    quality.checks.emplace_back("class balance");
    std::vector<int64_t> counts(static_cast<size_t>(classes));
    for (const int64_t label : labels[0]) {
      if (label >= 0) ++counts[static_cast<size_t>(label)];
    }
    check_balance(counts, signature.classes, quality);
  }
  return quality;
}

}  // namespace gallop::data

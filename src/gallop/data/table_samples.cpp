#include "gallop/data/table_samples.h"

#include <algorithm>

namespace gallop::data {

namespace {

size_t per_row(size_t elements, size_t rows) { return rows == 0 ? 0 : elements / rows; }

Fields fields_of(size_t width, size_t categories, const TableTargets& targets, bool has_weights) {
  RowShape target{.sizes = {static_cast<int64_t>(targets.columns)}};
  if (targets.is_class) target = {.sizes = {}, .dtype = c10::ScalarType::Long};
  std::vector<Field> fields = {{.name = "features",
                                .role = FieldRole::kInput,
                                .shape = {.sizes = {static_cast<int64_t>(width)}}},
                               {.name = "target", .role = FieldRole::kTarget, .shape = target}};
  if (categories > 0) {
    fields.push_back(
        {.name = "categories",
         .role = FieldRole::kInput,
         .shape = {.sizes = {static_cast<int64_t>(categories)}, .dtype = c10::ScalarType::Long}});
  }
  if (has_weights) fields.push_back({.name = "weight", .shape = {.sizes = {}}});
  return Fields(std::move(fields));
}

template <typename T>
void append(const std::vector<T>& from, size_t row, size_t count, std::vector<T>& into) {
  const auto begin = from.begin() + static_cast<ptrdiff_t>(row * count);
  into.insert(into.end(), begin, begin + static_cast<ptrdiff_t>(count));
}

}  // namespace

TableSamples::TableSamples(const Table& table, const EncodedRows& encoded,
                           const TableTargets& targets, const std::vector<float>& weights,
                           const std::vector<int64_t>& rows)
    : Samples(fields_of(per_row(encoded.numbers.size(), table.lines.size()),
                        per_row(encoded.categories.size(), table.lines.size()), targets,
                        !weights.empty())),
      files_(table.files),
      width_(per_row(encoded.numbers.size(), table.lines.size())),
      categories_(per_row(encoded.categories.size(), table.lines.size())),
      targets_(targets.columns),
      is_class_(targets.is_class),
      has_weights_(!weights.empty()) {
  for (const int64_t index : rows) {
    const auto row = static_cast<size_t>(index);
    append(encoded.numbers, row, width_, features_);
    append(encoded.categories, row, categories_, indices_);
    if (!targets.labels.empty()) labels_.push_back(targets.labels[row]);
    if (!targets.numbers.empty()) append(targets.numbers, row, targets_, numbers_);
    if (has_weights_) weights_.push_back(weights[row]);
    lines_.push_back(table.lines[row]);
    if (!table.file_of.empty()) file_of_.push_back(table.file_of[row]);
  }
}

std::optional<int64_t> TableSamples::label(int64_t index) const {
  if (labels_.empty()) return std::nullopt;
  return labels_[static_cast<size_t>(index)];
}

std::string TableSamples::describe(int64_t index) const {
  return place_of_row(files_, file_of_, lines_, index);
}

bool TableSamples::fill(int64_t index, int64_t /*epoch*/, const SampleRow& row, Scratch&) const {
  const auto i = static_cast<size_t>(index);
  const auto copy = [i](const auto& from, size_t count, auto* to) {
    std::copy_n(from.begin() + static_cast<ptrdiff_t>(i * count), count, to);
  };
  copy(features_, width_, row.as<float>(0));
  if (is_class_) {
    *row.as<int64_t>(1) = labels_.empty() ? 0 : labels_[i];
  } else if (numbers_.empty()) {
    std::fill_n(row.as<float>(1), targets_, 0.0F);
  } else {
    copy(numbers_, targets_, row.as<float>(1));
  }
  size_t next = 2;
  if (categories_ > 0) copy(indices_, categories_, row.as<int64_t>(next++));
  if (has_weights_) *row.as<float>(next) = weights_[i];
  return true;
}

}  // namespace gallop::data

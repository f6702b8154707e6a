#include "gallop/data/array_samples.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <c10/util/Half.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/text_samples.h"

namespace gallop::data {

namespace {

using Dtype = c10::ScalarType;

template <typename From, typename To>
void convert(const char* from, size_t count, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, count * sizeof(To));
  } else {
    for (size_t i = 0; i < count; ++i, from += sizeof(From)) {
      From value{};
      std::memcpy(&value, from, sizeof value);
      to[i] = static_cast<To>(value);
    }
  }
}

template <typename To>
void convert(Dtype dtype, const char* from, size_t count, To* to) {
  switch (dtype) {
    case Dtype::Bool:
      convert<uint8_t>(from, count, to);
      // Other bytes than 0 and 1 are no values of the type bool.
      std::for_each_n(to, count, [](To& value) { value = static_cast<To>(value != 0); });
      return;
    case Dtype::Byte: return convert<uint8_t>(from, count, to);
    case Dtype::Char: return convert<int8_t>(from, count, to);
    case Dtype::Short: return convert<int16_t>(from, count, to);
    case Dtype::UInt16: return convert<uint16_t>(from, count, to);
    case Dtype::Int: return convert<int32_t>(from, count, to);
    case Dtype::UInt32: return convert<uint32_t>(from, count, to);
    case Dtype::Long: return convert<int64_t>(from, count, to);
    case Dtype::Half: return convert<c10::Half>(from, count, to);
    case Dtype::Float: return convert<float>(from, count, to);
    case Dtype::Double: return convert<double>(from, count, to);
    default: throw InternalError("an array of a dtype that is not read");
  }
}

const char* row_of(const NpyArray& array, int64_t index) {
  return array.values.data() + static_cast<size_t>(index) * array.row_bytes();
}

size_t values_per_row(const NpyArray& array) {
  return array.row_bytes() / c10::elementSize(array.dtype);
}

class ArraySamples final : public Samples {
 public:
  ArraySamples(ArraySamplesConfig config, std::vector<ArrayField> fields)
      : Samples(Fields(fields_of(fields))),
        config_(std::move(config)),
        fields_(std::move(fields)) {}

  int64_t size() const override { return fields_[0].arrays[0]->sizes[0]; }
  bool every_target_counts() const override { return config_.every_target_counts; }
  std::optional<int64_t> label(int64_t index) const override {
    if (!config_.has_labels) return std::nullopt;
    int64_t label = 0;
    const NpyArray& array = *fields_[fields().target_index()].arrays[0];
    read_row(array, index, &label);
    return label;
  }
  std::string describe(int64_t index) const override {
    return fmt::format("{}: row {}", printable(config_.name), index);
  }
  bool fill(int64_t index, int64_t /*epoch*/, const SampleRow& row, Scratch&) const override {
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].field.shape.dtype == Dtype::Long) {
        write(fields_[i], index, row.as<int64_t>(i));
        continue;
      }
      write(fields_[i], index, row.as<float>(i));
      if (fields_[i].is_normalized) normalize(row.as<float>(i), fields_[i].field.shape.sizes);
    }
    return true;
  }

 private:
  static std::vector<Field> fields_of(const std::vector<ArrayField>& fields) {
    std::vector<Field> list;
    for (const ArrayField& one : fields) list.push_back(one.field);
    return list;
  }
  static size_t count_of(const std::vector<int64_t>& sizes) {
    return static_cast<size_t>(c10::multiply_integers(sizes));
  }

  template <typename To>
  static void write(const ArrayField& field, int64_t index, To* to) {
    if (field.arrays.empty()) std::fill_n(to, count_of(field.field.shape.sizes), To{1});
    for (const NpyArray* const array : field.arrays) {
      const size_t count = values_per_row(*array);
      convert(array->dtype, row_of(*array, index), count, to);
      if (field.lengths != nullptr) {
        int64_t length = 0;
        read_row(*field.lengths, index, &length);
        std::fill(to + length, to + count, static_cast<To>(kIgnoredTarget));
      }
      to += count;
    }
  }

  // Normalizes by the first dimension of a row or view: by channel or feature.
  void normalize(float* values, const std::vector<int64_t>& sizes) const {
    const auto& [mean, deviation] = config_.normalization;
    const size_t count = count_of(sizes);
    const size_t each = count / (static_cast<size_t>(config_.views) * mean.size());
    for (size_t i = 0; i < count; ++i) {
      const size_t group = i / each % mean.size();
      values[i] = static_cast<float>((values[i] - mean[group]) / deviation[group]);
    }
  }

  ArraySamplesConfig config_;
  std::vector<ArrayField> fields_;
};

}  // namespace

std::unique_ptr<Samples> make_array_samples(ArraySamplesConfig config,
                                            std::vector<ArrayField> fields) {
  return std::make_unique<ArraySamples>(std::move(config), std::move(fields));
}

bool changes(const Normalization& normalization) {
  const auto is_not = [](double number) { return [=](double other) { return other != number; }; };
  return std::any_of(normalization.mean.begin(), normalization.mean.end(), is_not(0)) ||
         std::any_of(normalization.deviation.begin(), normalization.deviation.end(), is_not(1));
}

std::pair<int64_t, int64_t> range_of(const NpyArray& array, bool ignores) {
  constexpr size_t kBlock = 1 << 16;
  const size_t size = c10::elementSize(array.dtype), count = array.values.size() / size;
  std::vector<int64_t> block(std::min(kBlock, count));
  std::pair<int64_t, int64_t> range{INT64_MAX, INT64_MIN};
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t length = std::min(kBlock, count - begin);
    convert(array.dtype, array.values.data() + begin * size, length, block.data());
    for (size_t i = 0; i < length; ++i) {
      if (ignores && block[i] == kIgnoredTarget) continue;
      range = {std::min(range.first, block[i]), std::max(range.second, block[i])};
    }
  }
  return range;
}

void read_row(const NpyArray& array, int64_t row, float* values) {
  convert(array.dtype, row_of(array, row), values_per_row(array), values);
}

void read_row(const NpyArray& array, int64_t row, int64_t* values) {
  convert(array.dtype, row_of(array, row), values_per_row(array), values);
}

}  // namespace gallop::data

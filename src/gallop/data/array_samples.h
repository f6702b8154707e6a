#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gallop/data/normalize.h"
#include "gallop/data/npy.h"
#include "gallop/data/samples.h"

namespace gallop::data {

/// A field whose values are those of arrays, converted to its dtype.
struct ArrayField {
  Field field;
  /// Must outlive the samples. Several are stacked along a new first dimension of the rows; without
  /// any, each value of the field is 1.
  std::vector<const NpyArray*> arrays{};
  const NpyArray* lengths = nullptr;  ///< From there on, the values of a row are kIgnoredTarget.
  bool is_normalized = false;         ///< By the mean and standard deviation of the samples.
};

/// Properties of the samples of arrays.
struct ArraySamplesConfig {
  std::string name;             ///< Of the file or folder, for Samples::describe().
  Normalization normalization;  ///< Along the first dimension of a row, or of each of its views.
  int64_t views = 1;            ///< Parts of a row, of which each is normalized.
  bool has_labels = false;      ///< Targets are class labels.
  bool every_target_counts = false;
};

/// Samples with a row of each array, read when they are needed.
std::unique_ptr<Samples> make_array_samples(ArraySamplesConfig config,
                                            std::vector<ArrayField> fields);

/// Whether a normalization changes values.
bool changes(const Normalization& normalization);

/// The smallest and largest value of an array of whole numbers; `ignores`: of those that are not
/// kIgnoredTarget.
std::pair<int64_t, int64_t> range_of(const NpyArray& array, bool ignores);

/// Writes the values of a row, as many as `array.row_sizes()` has elements.
void read_row(const NpyArray& array, int64_t row, float* values);
void read_row(const NpyArray& array, int64_t row, int64_t* values);

}  // namespace gallop::data

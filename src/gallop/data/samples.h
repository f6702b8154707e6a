#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/core/ScalarType.h>

namespace gallop::data {

/// Shape of one row of a batch.
struct RowShape {
  std::vector<int64_t> sizes;  ///< Images [C, H, W], text [T], a label [].
  c10::ScalarType dtype = c10::ScalarType::Float;
  bool channels_last = false;  ///< Rows lie as [H, W, C] in memory.
};

/// What a field is to a training step.
enum class FieldRole {
  kInput,   ///< What the model reads: the first one as Model::forward() takes it.
  kTarget,  ///< What the loss and the metrics compare the outputs with.
  kOther,   ///< What a model or a loss may read by name, such as weights or masks.
};

/// A named tensor that every sample has.
struct Field {
  std::string name;  ///< "image", "tokens", "label", "mask"
  FieldRole role = FieldRole::kOther;
  RowShape shape{};
  /// If set, a sample may have fewer than shape.sizes[0] elements along its first dimension. The
  /// loader fills the rest of a row with this value, and a batch is as long as its longest row.
  std::optional<double> padding{};
};

/// The fields of a data set. The first input and the only target have a place of their own.
class Fields {
 public:
  /// Throws UsageError where two have one name, a ragged one has no first dimension, or there is no
  /// input or not exactly one target.
  explicit Fields(std::vector<Field> list);
  /// An input and a target.
  Fields(Field input, Field target);

  size_t size() const { return list_.size(); }
  const Field& operator[](size_t i) const { return list_[i]; }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

  const Field& input() const { return list_[input_]; }
  const Field& target() const { return list_[target_]; }
  size_t input_index() const { return input_; }
  size_t target_index() const { return target_; }
  /// Its index. Throws UsageError with the names that there are.
  size_t find(std::string_view name) const;

 private:
  std::vector<Field> list_;
  size_t input_ = 0, target_ = 0;
};

/// Where a sample is written: a row of each field's buffer.
class SampleRow {
 public:
  /// `rows` and `lengths` have an element for each field, in their order.
  SampleRow(std::span<void* const> rows, std::span<int64_t> lengths)
      : rows_(rows), lengths_(lengths) {}

  void* raw(size_t field) const { return rows_[field]; }
  template <typename T>
  T* as(size_t field) const {
    return static_cast<T*>(rows_[field]);
  }
  /// Elements along the first dimension of a ragged field that were written; all unless it is
  /// called.
  void set_length(size_t field, int64_t length) const { lengths_[field] = length; }

 private:
  std::span<void* const> rows_;
  std::span<int64_t> lengths_;
};

/// Buffers that one loader thread keeps between samples.
class Scratch {
 public:
  virtual ~Scratch() = default;
};

/// Finished training samples at random access: the end of every data set's chain of reading,
/// decoding, augmenting and normalizing, and all that the loader knows of data.
class Samples {
 public:
  explicit Samples(Fields fields) : fields_(std::move(fields)) {}
  virtual ~Samples() = default;

  /// What every sample consists of.
  const Fields& fields() const { return fields_; }

  virtual int64_t size() const = 0;
  /// Targets are class labels, none of which is ever kIgnoredTarget: how many count follows from
  /// the number of samples. Where false, a step computes it.
  virtual bool every_target_counts() const { return false; }
  /// What a person finds a sample by: a path, "line 17 of houses.csv".
  virtual std::string describe(int64_t index) const;
  /// By default without buffers.
  virtual std::unique_ptr<Scratch> make_scratch() const { return std::make_unique<Scratch>(); }

  /// Writes sample `index` of `epoch` into one row of a batch. A pure function of its arguments,
  /// safe to call from many threads. Returns false where the sample is broken and is to be skipped;
  /// throws DataError where it is broken and that is to stop the run.
  virtual bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const = 0;

 private:
  Fields fields_;
};

}  // namespace gallop::data

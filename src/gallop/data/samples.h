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

/// The target of a sample or position that is ignored in the loss.
inline constexpr int64_t kIgnoredTarget = -100;

/// The shape of one row of a batch.
struct RowShape {
  std::vector<int64_t> sizes;  ///< Images [C, H, W], text [T], a label [].
  c10::ScalarType dtype = c10::ScalarType::Float;
  bool channels_last = false;  ///< Rows are stored as [H, W, C].
};

/// The role of a field in a training step.
enum class FieldRole {
  kInput,   ///< Read by the model; the first one is passed to Model::forward().
  kTarget,  ///< Compared with the outputs by the loss and the metrics.
  kOther,   ///< Read by name by a model or loss, such as weights or masks.
};

/// A named tensor that every sample has.
struct Field {
  std::string name;  ///< "image", "tokens", "label", "mask"
  FieldRole role = FieldRole::kOther;
  RowShape shape{};
  /// If set, a sample may have fewer than shape.sizes[0] elements along its first dimension. The
  /// loader pads the rest of a row with this value, and a batch is as long as its longest row.
  std::optional<double> padding{};
};

/// The fields of a data set, with the indices of the first input and the only target.
class Fields {
 public:
  /// Throws UsageError if names are repeated, a ragged field has no first dimension, or there is no
  /// input or not exactly one target.
  explicit Fields(std::vector<Field> list);
  /// The fields of samples with one input and one target.
  Fields(Field input, Field target);

  size_t size() const { return list_.size(); }
  const Field& operator[](size_t i) const { return list_[i]; }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

  const Field& input() const { return list_[input_]; }
  const Field& target() const { return list_[target_]; }
  size_t input_index() const { return input_; }
  size_t target_index() const { return target_; }
  /// Returns the index of a field. Throws UsageError that lists the existing names.
  size_t find(std::string_view name) const;

 private:
  std::vector<Field> list_;
  size_t input_ = 0, target_ = 0;
};

/// The destination of a sample: a row in each field's buffer.
class SampleRow {
 public:
  /// `rows` and `lengths` have one element per field, in order.
  SampleRow(std::span<void* const> rows, std::span<int64_t> lengths)
      : rows_(rows), lengths_(lengths) {}

  void* raw(size_t field) const { return rows_[field]; }
  template <typename T>
  T* as(size_t field) const {
    return static_cast<T*>(rows_[field]);
  }
  /// Sets the number of elements written along the first dimension of a ragged field. The default
  /// is all of them.
  void set_length(size_t field, int64_t length) const { lengths_[field] = length; }

 private:
  std::span<void* const> rows_;
  std::span<int64_t> lengths_;
};

/// Buffers that a loader thread reuses between samples.
class Scratch {
 public:
  virtual ~Scratch() = default;
};

/// Training samples with random access: the final stage of reading, decoding, augmenting and
/// normalizing a data set, and the only interface that the loader uses.
class Samples {
 public:
  explicit Samples(Fields fields) : fields_(std::move(fields)) {}
  virtual ~Samples() = default;

  /// The fields of every sample.
  const Fields& fields() const { return fields_; }

  virtual int64_t size() const = 0;
  /// Whether targets are class labels that never equal kIgnoredTarget, so that the number of
  /// targets that count follows from the number of samples. If false, a step computes it.
  virtual bool every_target_counts() const { return false; }
  /// Whether indices are positions of an epoch in an order that fill() knows, so that the loader
  /// does not shuffle them.
  virtual bool has_own_order() const { return false; }
  /// If a whole block of samples is read for one of them: how many blocks fit in memory, and the
  /// block of a sample. 0: each is read alone.
  virtual int64_t window_blocks() const { return 0; }
  virtual int64_t block(int64_t /*index*/) const { return 0; }
  /// The class label of a sample, if it is known without reading the sample: for all or for none.
  virtual std::optional<int64_t> label(int64_t /*index*/) const { return std::nullopt; }
  /// The sizes of a sample's input if they differ between samples, with at most as many elements as
  /// Field::shape; empty if all inputs have those of Field::shape. Evaluations put samples of equal
  /// sizes into a batch. Training samples must all have one size.
  virtual std::vector<int64_t> input_sizes(int64_t /*index*/) const { return {}; }
  /// If these are other samples, drawn or put in order: those samples, and the index that one of
  /// them has there. The same samples and index for all others.
  virtual const Samples& source() const { return *this; }
  virtual int64_t source_index(int64_t /*epoch*/, int64_t index) const { return index; }
  /// A name by which the user can find a sample: a path, "line 17 of houses.csv".
  virtual std::string describe(int64_t index) const;
  /// Creates the buffers of one thread. By default there are none.
  virtual std::unique_ptr<Scratch> make_scratch() const { return std::make_unique<Scratch>(); }

  /// Writes sample `index` of `epoch` into one row of a batch. A pure function of its arguments;
  /// thread-safe. Returns false if the sample is broken and is to be skipped; throws DataError if
  /// it is broken and is to stop the run.
  virtual bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const = 0;

 private:
  Fields fields_;
};

}  // namespace gallop::data

#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/data/samples.h"

// What a loader fills batches in.
namespace gallop::data {

/// One reused buffer for a field of a batch.
struct BatchRows {
  at::Tensor tensor;  ///< [rows, ...]
  char* data = nullptr;
  int64_t row_bytes = 0;
  int64_t item_bytes = 0;          ///< Of a ragged field: of one element along its first dimension.
  std::vector<char> padding{};     ///< The bytes of one padded element.
  std::vector<int64_t> lengths{};  ///< Elements written to each row of a ragged field.

  bool is_ragged() const { return !lengths.empty(); }
  char* row(int64_t index) const { return data + index * row_bytes; }
  /// Fills what a ragged row has left with padding.
  void pad(int64_t index) const;
  /// The first rows. Of a ragged field, as long as the longest of them, rounded up, whose rows it
  /// moves together: once for each filling of the buffer.
  at::Tensor first(int64_t count);

 private:
  int64_t length_of(int64_t count) const;
};

/// How many lengths batches of a ragged field may have: a batch is as long as its longest row,
/// rounded up to a multiple of this fraction of the most, since a step is compiled for each shape.
inline constexpr int64_t kBatchLengths = 8;

/// Throws UsageError where so many cannot be addressed, DeviceError where there is no memory.
BatchRows make_rows(const Field& field, int64_t rows, bool pinned);

/// Samples of one epoch that lie side by side, and the batch that they are a part of.
struct BatchRange {
  int64_t epoch = 0;
  int64_t position = 0;
  int64_t rows = 0;
  int64_t whole_position = 0;
  int64_t whole_rows = 0;

  int64_t whole_end() const { return whole_position + whole_rows; }
};

/// A batch that is being filled or waits to be taken.
struct BatchSlot {
  std::vector<BatchRows> fields;  ///< In the order of Samples::fields().
  BatchRange range;
  int64_t taken = 0;        ///< Rows that threads have begun or finished.
  int64_t done = 0;         ///< Rows that threads have finished.
  int64_t broken_rows = 0;  ///< Of those.
  std::vector<uint8_t> broken;
  std::exception_ptr error;  ///< Of the first row that has one.
  int64_t error_row = 0;

  bool ready() const { return done == range.rows; }

  /// For other samples.
  void open(const BatchRange& next);

  int64_t kept() const { return range.rows - broken_rows; }

  /// Moves the rows behind broken ones up.
  void remove_broken();
};

}  // namespace gallop::data

#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/data/samples.h"

// What a loader fills batches in.
namespace gallop::data {

/// One reused buffer for a column of a batch.
struct BatchRows {
  at::Tensor tensor;  ///< [rows, ...]
  char* data = nullptr;
  int64_t row_bytes = 0;

  char* row(int64_t index) const { return data + index * row_bytes; }
  at::Tensor first(int64_t count) const {
    return count == tensor.size(0) ? tensor : tensor.narrow(0, 0, count);
  }
};

/// Throws UsageError where so many cannot be addressed, DeviceError where there is no memory.
BatchRows make_rows(const RowShape& shape, int64_t rows, bool pinned);

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
  BatchRows input;
  BatchRows target;
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

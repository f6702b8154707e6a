#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/data/samples.h"

// The buffers that a loader fills with batches.
namespace gallop::data {

/// One reused buffer for a field of a batch.
struct BatchRows {
  at::Tensor tensor;  ///< [rows, ...]
  char* data = nullptr;
  int64_t row_bytes = 0;
  int64_t item_bytes = 0;          ///< Bytes of one element along a ragged field's first dimension.
  std::vector<char> padding{};     ///< The bytes of one padding element.
  std::vector<int64_t> lengths{};  ///< Elements written to each row of a ragged field.
  std::vector<int64_t> sizes{};    ///< Of the rows of this batch; empty: those of `tensor`.

  bool is_ragged() const { return !lengths.empty(); }
  char* row(int64_t index) const { return data + index * row_bytes; }
  /// Gives the rows of the next batch these sizes. Throws InternalError if they need more memory
  /// than the field has.
  void resize(std::vector<int64_t> row_sizes);
  /// Fills the rest of a ragged row with padding.
  void pad(int64_t index) const;
  /// Returns the first `count` rows. A ragged field is trimmed to its longest row, rounded up, and
  /// its rows are compacted in place, so this must be called only once per filled buffer.
  at::Tensor first(int64_t count);

 private:
  int64_t length_of(int64_t count) const;
};

/// The number of distinct batch lengths of a ragged field. Each batch is padded to its longest row,
/// rounded up to a multiple of 1/8 of the maximum, because a step is compiled for each shape.
inline constexpr int64_t kBatchLengths = 8;

/// The length of a batch whose longest row has `longest` of at most `most` elements.
int64_t padded_length(int64_t longest, int64_t most);

/// Throws UsageError if the size overflows, DeviceError if the allocation fails.
BatchRows make_rows(const Field& field, int64_t rows, bool pinned);

/// A contiguous range of samples of one epoch and the global batch that contains it.
struct BatchRange {
  int64_t epoch = 0;
  int64_t position = 0;
  int64_t rows = 0;
  int64_t whole_position = 0;
  int64_t whole_rows = 0;

  /// Positions of further samples, which transforms mix with those of the range.
  std::vector<int64_t> partners{};

  int64_t whole_end() const { return whole_position + whole_rows; }
  int64_t filled_rows() const { return rows + static_cast<int64_t>(partners.size()); }
  int64_t position_of(int64_t row) const {
    return row < rows ? position + row : partners[static_cast<size_t>(row - rows)];
  }
};

class PackedRows;

/// A batch that is being filled or is ready for the caller.
struct BatchSlot {
  std::vector<BatchRows> fields;       ///< In the order of Samples::fields().
  std::shared_ptr<PackedRows> packed;  ///< Null unless batches are packed.
  BatchRange range;
  int64_t taken = 0;        ///< Rows that threads have claimed or filled.
  int64_t done = 0;         ///< Rows that threads have filled.
  int64_t broken_rows = 0;  ///< Filled rows whose sample is broken, partners included.
  std::vector<uint8_t> broken;
  std::exception_ptr error;  ///< The error of the first row that failed.
  int64_t error_row = 0;

  bool ready() const { return done == range.filled_rows(); }

  /// Resets the slot for the samples in `next`.
  void open(const BatchRange& next);

  int64_t kept() const { return range.filled_rows() - broken_rows; }
  /// Broken rows of the range, without partners.
  int64_t broken_own() const;
  /// The positions of the rows that are left after remove_broken().
  std::vector<int64_t> kept_positions() const;

  /// Compacts the rows so that no broken rows remain in between.
  void remove_broken();
};

}  // namespace gallop::data

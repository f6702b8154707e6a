#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/data/batch_slot.h"
#include "gallop/data/samples.h"

// Packing: several texts in one row of a batch, for less padding.
namespace gallop::data {

/// Where a text is in packed rows.
struct PackedPlace {
  int64_t row = 0, begin = 0;
};

/// The packed rows of some texts.
struct Packing {
  std::vector<PackedPlace> places;  ///< One per text, in the order of the texts.
  int64_t rows = 0;                 ///< Without those that padded_rows() adds.
};

/// Packs texts into rows of `capacity` tokens by best-fit decreasing: texts in descending order of
/// length, each into the row with the least free space that has room for it. A function of the
/// lengths alone.
Packing pack(std::span<const int64_t> lengths, int64_t capacity);

/// Rounds a number of rows up to a multiple of at most 1/16 of it, because a step is compiled for
/// each shape.
int64_t padded_rows(int64_t rows);

/// Whether samples can be packed: every field has one element per token.
bool can_pack(const Fields& fields);

/// The field that distinguishes the texts of a packed row: int64, 0 at the first token of each and
/// counting up from there. Padding behind the last text counts as a text.
inline constexpr const char* kPositionIdsField = "position_ids";

/// The fields of packed batches: those of the samples, which can_pack(), and kPositionIdsField.
/// Kept to the end of the program, as a batch may outlive its loader.
const Fields& packed_fields(const Fields& fields);

/// Buffers for a packed batch.
class PackedRows {
 public:
  /// For batches of at most `texts` samples, which can_pack().
  PackedRows(const Fields& fields, int64_t texts, bool pinned);

  /// Returns the packed rows of the first `count` rows of each field, and the position ids: [R, T],
  /// where T is the maximum length. The tensors are valid until the next call.
  std::vector<at::Tensor> pack(const std::vector<BatchRows>& filled, int64_t count);

 private:
  int64_t capacity_;
  std::vector<BatchRows> rows_;  ///< Of each field, then the position ids.
};

}  // namespace gallop::data

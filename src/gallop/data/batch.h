#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/data/samples.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::data {

/// A batch as a range of an epoch, whichever processes share it.
struct WholeBatch {
  int64_t epoch = 0;
  int64_t position = 0;  ///< Index of its first sample in the epoch.
  int64_t size = 0;      ///< Samples, including broken ones.
};

/// Samples ready for a training step: a batch, or this process's slice of it.
struct Batch {
  const Fields* fields = nullptr;   ///< The fields of the samples.
  std::vector<at::Tensor> tensors;  ///< One tensor [N, ...] per field.
  int64_t skipped = 0;              ///< Broken samples left out. N may be 0.
  int64_t epoch = 0;
  int64_t position = 0;        ///< Index of the first sample in its epoch.
  int64_t whole_position = 0;  ///< Index of the first sample of the global batch in its epoch.
  int64_t whole_size = 0;      ///< Samples of the global batch, including broken ones.
  bool last_of_epoch = false;
  /// Until transforms have been applied: the last rows, of other processes, that own rows are mixed
  /// with.
  int64_t partner_rows = 0;
  /// Index of each row in its epoch; empty: position, position + 1, ...
  std::vector<int64_t> row_positions{};
  /// The number of samples, if rows contain several (LoaderConfig::packs).
  std::optional<int64_t> packed_samples{};

  int64_t rows() const { return tensors.front().size(0); }
  /// The number of samples, without those that were left out.
  int64_t size() const { return packed_samples.value_or(rows()); }
  int64_t own_size() const { return size() - partner_rows; }
  WholeBatch whole() const { return {epoch, whole_position, whole_size}; }
  int64_t position_of(int64_t row) const {
    return row_positions.empty() ? position + row : row_positions[static_cast<size_t>(row)];
  }
  const at::Tensor& input() const { return tensors[fields->input_index()]; }
  const at::Tensor& target() const { return tensors[fields->target_index()]; }
  /// Returns a field by name. Throws UsageError that lists the existing names.
  const at::Tensor& operator[](std::string_view name) const { return tensors[fields->find(name)]; }
  /// The tensors for a training step: "input" and "target", then the other fields by name.
  NamedTensors by_role() const;
  void to(c10::Device device, bool non_blocking = false);
};

}  // namespace gallop::data

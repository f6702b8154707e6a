#include "gallop/data/batch_slot.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "gallop/base/checked.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

BatchRows make_rows(const RowShape& shape, int64_t rows, bool pinned) {
  std::vector<int64_t> sizes = {rows};
  sizes.insert(sizes.end(), shape.sizes.begin(), shape.sizes.end());
  const auto item_bytes = static_cast<int64_t>(c10::elementSize(shape.dtype));
  const auto elements = checked_product(sizes);
  const auto bytes = elements ? checked_multiply(*elements, item_bytes) : std::nullopt;
  if (!bytes) throw UsageError(fmt::format("a batch of {} samples does not fit memory", rows));
  const auto format =
      shape.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  BatchRows result;
  try {
    result.tensor =
        at::empty(sizes, at::TensorOptions().dtype(shape.dtype).pinned_memory(pinned), format);
  } catch (const c10::Error& error) {
    throw DeviceError(fmt::format("cannot get {} of {} memory for a batch of {} samples: {}",
                                  format_bytes(*bytes), pinned ? "page-locked" : "main", rows,
                                  error.what_without_backtrace()));
  }
  result.data = static_cast<char*>(result.tensor.data_ptr());
  result.row_bytes = *bytes / rows;
  return result;
}

void BatchSlot::open(const BatchRange& next) {
  range = next;
  taken = done = broken_rows = 0;
  std::fill(broken.begin(), broken.end(), 0);
  error = nullptr;
}

void BatchSlot::remove_broken() {
  if (broken_rows == 0) return;
  int64_t kept = 0;
  for (int64_t row = 0; row < range.rows; ++row) {
    if (broken[static_cast<size_t>(row)]) continue;
    if (kept != row) {
      std::memcpy(input.row(kept), input.row(row), static_cast<size_t>(input.row_bytes));
      std::memcpy(target.row(kept), target.row(row), static_cast<size_t>(target.row_bytes));
    }
    ++kept;
  }
}

}  // namespace gallop::data

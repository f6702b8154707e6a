#include "gallop/data/batch_slot.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/util/strides.h>
#include <fmt/format.h>

#include "gallop/base/checked.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

// Returns the bytes of one element, each of its values set to `value`.
std::vector<char> padding_of(double value, c10::ScalarType dtype, int64_t bytes) {
  const at::Tensor one = at::full({bytes / static_cast<int64_t>(c10::elementSize(dtype))}, value,
                                  at::TensorOptions().dtype(dtype));
  std::vector<char> padding(static_cast<size_t>(bytes));
  std::memcpy(padding.data(), one.const_data_ptr(), padding.size());
  return padding;
}

}  // namespace

void BatchRows::resize(std::vector<int64_t> row_sizes) {
  const auto item = static_cast<int64_t>(tensor.element_size());
  const int64_t bytes = c10::multiply_integers(row_sizes) * item;
  const int64_t available = static_cast<int64_t>(tensor.nbytes()) / tensor.size(0);
  if (bytes > available) {
    throw InternalError(fmt::format("rows of {} bytes in a field of {}", bytes, available));
  }
  sizes = std::move(row_sizes);
  row_bytes = bytes;
}

void BatchRows::pad(int64_t index) const {
  char* const end = row(index) + row_bytes;
  for (char* at = row(index) + lengths[static_cast<size_t>(index)] * item_bytes; at < end;
       at += item_bytes) {
    std::memcpy(at, padding.data(), padding.size());
  }
}

int64_t BatchRows::length_of(int64_t count) const {
  int64_t longest = 1;
  if (count > 0) longest = *std::max_element(lengths.begin(), lengths.begin() + count);
  return padded_length(longest, tensor.size(1));
}

at::Tensor BatchRows::first(int64_t count) {
  if (!sizes.empty()) {
    std::vector<int64_t> all = {count};
    all.insert(all.end(), sizes.begin(), sizes.end());
    const bool is_channels_last = tensor.suggest_memory_format() == at::MemoryFormat::ChannelsLast;
    return is_channels_last ? tensor.as_strided(all, c10::get_channels_last_strides_2d(all))
                            : tensor.as_strided(all, c10::contiguous_strides(all));
  }
  if (!is_ragged()) return count == tensor.size(0) ? tensor : tensor.narrow(0, 0, count);
  const int64_t longest = length_of(count);
  if (longest == tensor.size(1)) return tensor.narrow(0, 0, count);
  const int64_t used = longest * item_bytes;
  for (int64_t i = 1; i < count; ++i) {
    std::memmove(data + i * used, row(i), static_cast<size_t>(used));
  }
  std::vector<int64_t> sizes = tensor.sizes().vec(), strides = tensor.strides().vec();
  sizes[0] = count;
  sizes[1] = longest;
  strides[0] = longest * strides[1];
  return tensor.as_strided(sizes, strides);
}

int64_t padded_length(int64_t longest, int64_t most) {
  const int64_t unit = (most + kBatchLengths - 1) / kBatchLengths;
  return std::min((longest + unit - 1) / unit * unit, most);
}

BatchRows make_rows(const Field& field, int64_t rows, bool pinned) {
  const RowShape& shape = field.shape;
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
  if (field.padding) {
    result.item_bytes = result.row_bytes / shape.sizes.front();
    result.padding = padding_of(*field.padding, shape.dtype, result.item_bytes);
    result.lengths.resize(static_cast<size_t>(rows));
  }
  return result;
}

void BatchSlot::open(const BatchRange& next) {
  range = next;
  taken = done = broken_rows = 0;
  std::fill(broken.begin(), broken.end(), 0);
  error = nullptr;
}

int64_t BatchSlot::broken_own() const {
  if (broken_rows == 0) return 0;
  return std::count(broken.begin(), broken.begin() + range.rows, 1);
}

std::vector<int64_t> BatchSlot::kept_positions() const {
  std::vector<int64_t> positions;
  for (int64_t row = 0; row < range.filled_rows(); ++row) {
    if (!broken[static_cast<size_t>(row)]) positions.push_back(range.position_of(row));
  }
  return positions;
}

void BatchSlot::remove_broken() {
  if (broken_rows == 0) return;
  int64_t kept = 0;
  for (int64_t row = 0; row < range.filled_rows(); ++row) {
    if (broken[static_cast<size_t>(row)]) continue;
    if (kept != row) {
      for (BatchRows& field : fields) {
        std::memcpy(field.row(kept), field.row(row), static_cast<size_t>(field.row_bytes));
        if (!field.is_ragged()) continue;
        field.lengths[static_cast<size_t>(kept)] = field.lengths[static_cast<size_t>(row)];
      }
    }
    ++kept;
  }
}

}  // namespace gallop::data

#include "gallop/data/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::data {

namespace {

int64_t capacity_of(const Fields& fields) { return fields.input().shape.sizes.front(); }

Field position_ids_field(int64_t capacity) {
  return {.name = kPositionIdsField,
          .shape = {.sizes = {capacity}, .dtype = c10::ScalarType::Long},
          .padding = 0.0};
}

}  // namespace

Packing pack(std::span<const int64_t> lengths, int64_t capacity) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  Packing packing{.places = std::vector<PackedPlace>(lengths.size())};
  std::set<std::pair<int64_t, int64_t>> room;  // Free tokens of each row, and its number.
  for (const size_t text : order) {
    std::pair<int64_t, int64_t> best{capacity, packing.rows};
    const auto found = room.lower_bound({lengths[text], 0});
    if (found == room.end()) {
      ++packing.rows;
    } else {
      best = *found;
      room.erase(found);
    }
    const auto [free, row] = best;
    packing.places[text] = {.row = row, .begin = capacity - free};
    room.emplace(free - lengths[text], row);
  }
  return packing;
}

int64_t padded_rows(int64_t rows) {
  constexpr uint64_t kParts = 16;
  const auto unit = static_cast<int64_t>(
      std::bit_floor(std::max<uint64_t>(1, static_cast<uint64_t>(rows) / kParts)));
  return (rows + unit - 1) / unit * unit;
}

bool can_pack(const Fields& fields) {
  return std::all_of(fields.begin(), fields.end(), [&](const Field& field) {
    return field.padding && field.shape.sizes == fields.input().shape.sizes &&
           field.shape.sizes.size() == 1;
  });
}

const Fields& packed_fields(const Fields& fields) {
  static std::mutex mutex;
  static std::map<std::string, Fields> kept;
  if (!can_pack(fields)) throw InternalError("packing: a field has not one element per token");
  std::string key = std::to_string(capacity_of(fields));
  std::vector<Field> all(fields.begin(), fields.end());
  for (const Field& field : all) {
    key += fmt::format(" {} {} {} {}", field.name, static_cast<int>(field.role),
                       c10::toString(field.shape.dtype), *field.padding);
  }
  all.push_back(position_ids_field(capacity_of(fields)));
  const std::lock_guard lock(mutex);
  return kept.try_emplace(key, std::move(all)).first->second;
}

PackedRows::PackedRows(const Fields& fields, int64_t texts, bool pinned)
    : capacity_(capacity_of(fields)) {
  for (const Field& field : packed_fields(fields)) {
    rows_.push_back(make_rows(field, padded_rows(texts), pinned));
  }
}

std::vector<at::Tensor> PackedRows::pack(const std::vector<BatchRows>& filled, int64_t count) {
  const auto lengths = std::span(filled.front().lengths).first(static_cast<size_t>(count));
  const Packing packing = data::pack(lengths, capacity_);
  const int64_t rows = padded_rows(packing.rows);
  std::vector<int64_t> used(static_cast<size_t>(rows));
  for (size_t text = 0; text < lengths.size(); ++text) {
    used[static_cast<size_t>(packing.places[text].row)] += lengths[text];
  }
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < rows_.size(); ++i) {
    BatchRows& to = rows_[i];
    const bool is_field = i < filled.size();
    for (size_t text = 0; text < lengths.size(); ++text) {
      const auto [row, begin] = packing.places[text];
      char* const at = to.row(row) + begin * to.item_bytes;
      if (is_field) {
        std::memcpy(at, filled[i].row(static_cast<int64_t>(text)),
                    static_cast<size_t>(lengths[text] * to.item_bytes));
      } else {
        auto* const ids = reinterpret_cast<int64_t*>(at);
        std::iota(ids, ids + lengths[text], 0);
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t length = to.lengths[static_cast<size_t>(row)] = used[static_cast<size_t>(row)];
      if (is_field) {
        to.pad(row);
      } else {
        auto* const ids = reinterpret_cast<int64_t*>(to.row(row));
        std::iota(ids + length, ids + capacity_, 0);
      }
    }
    tensors.push_back(to.tensor.narrow(0, 0, rows));
  }
  return tensors;
}

}  // namespace gallop::data

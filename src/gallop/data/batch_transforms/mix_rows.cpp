#include "gallop/data/batch_transforms/mix_rows.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include "gallop/base/error.h"

namespace gallop::data {

namespace {

// Elements of a row that a thread mixes at a time if there are no boxes.
constexpr int64_t kLine = 4096;

/// One change of a row. In a cycle of partners, the first row is saved before it changes.
struct Change {
  int64_t row = 0;
  bool saves_row = false;        ///< Before the change.
  bool takes_saved_row = false;  ///< In place of the partner, which has changed.
};

// An order in which every row changes before its partner does.
std::vector<Change> order_of(const std::vector<MixedRow>& plan) {
  const auto size = static_cast<int64_t>(plan.size());
  const auto at = [&](int64_t row) -> const MixedRow& { return plan[static_cast<size_t>(row)]; };
  const auto changes = [&](int64_t row) { return row < size && at(row).is_mixed(row); };
  std::vector<int64_t> waiting(plan.size(), 0);  // Rows that need this one as it is.
  std::vector<bool> is_done(plan.size(), false);
  for (int64_t row = 0; row < size; ++row) {
    if (changes(row) && changes(at(row).partner)) ++waiting[static_cast<size_t>(at(row).partner)];
  }
  std::vector<Change> order;
  const auto take = [&](int64_t row) {
    order.push_back({.row = row});
    is_done[static_cast<size_t>(row)] = true;
    return at(row).partner;
  };
  for (int64_t first = 0; first < size; ++first) {
    for (int64_t row = first; changes(row) && !is_done[static_cast<size_t>(row)] &&
                              waiting[static_cast<size_t>(row)] == 0;) {
      row = take(row);
      if (changes(row)) --waiting[static_cast<size_t>(row)];
    }
  }
  for (int64_t first = 0; first < size; ++first) {
    if (!changes(first) || is_done[static_cast<size_t>(first)]) continue;
    const size_t begin = order.size();
    for (int64_t row = first; !is_done[static_cast<size_t>(row)];) row = take(row);
    order[begin].saves_row = true;
    order.back().takes_saved_row = true;
  }
  return order;
}

inline float load(float value) { return value; }
inline float load(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }
inline void store(float value, float& out) { out = value; }
inline void store(float value, uint16_t& out) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto rounded = static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
  out = value != value ? uint16_t{0x7FC0} : rounded;
}

template <typename T>
[[gnu::always_inline]] inline void mix_loop(T* __restrict row, const T* __restrict partner,
                                            float keep, float rest, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    store(load(partner[i]) * rest + load(row[i]) * keep, row[i]);
  }
}

template <typename T>
void mix_plain(T* row, const T* partner, float keep, float rest, int64_t count) {
  mix_loop(row, partner, keep, rest, count);
}

// One version per instruction set, dispatched by hand as in normalize.cpp.
#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2")]] void mix_avx2(T* row, const T* partner, float keep, float rest,
                                      int64_t count) {
  mix_loop(row, partner, keep, rest, count);
}

template <typename T>
[[gnu::target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")]] void mix_avx512(
    T* row, const T* partner, float keep, float rest, int64_t count) {
  mix_loop(row, partner, keep, rest, count);
}
#endif

template <typename T>
using Mix = void (*)(T*, const T*, float, float, int64_t);

template <typename T>
Mix<T> best_mix() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return mix_avx512<T>;
  }
  if (__builtin_cpu_supports("avx2")) return mix_avx2<T>;
#endif
  return mix_plain<T>;
}

/// The memory of a row as lines, along which threads divide the work: those of an image if there
/// are boxes.
struct Lines {
  int64_t count = 1;
  int64_t size = 0;    ///< Elements of each, but the last one may be shorter.
  int64_t height = 0;  ///< Line y of an image is y, y + height, ... for its channels.
  int64_t pixel = 1;   ///< Elements of a pixel in a line.
};

bool is_channels_last(const at::Tensor& rows) {
  return rows.dim() == 4 && !rows.is_contiguous() &&
         rows.is_contiguous(at::MemoryFormat::ChannelsLast);
}

Lines lines_of(const at::Tensor& rows, bool has_boxes) {
  const int64_t elements = rows.numel() / rows.size(0);
  if (!has_boxes) return {.count = (elements + kLine - 1) / kLine, .size = kLine};
  if (rows.dim() < 3) throw InternalError("mix rows: a box of rows that are not images");
  const int64_t height = rows.size(-2), width = rows.size(-1);
  if (is_channels_last(rows)) {
    const int64_t channels = rows.size(1);
    return {.count = height, .size = width * channels, .height = height, .pixel = channels};
  }
  return {.count = elements / width, .size = width, .height = height};
}

template <typename T>
class Mixer {
 public:
  Mixer(at::Tensor& rows, const std::vector<MixedRow>& plan, const Lines& lines)
      : data_(static_cast<T*>(rows.mutable_data_ptr())),
        stride_(rows.numel() / rows.size(0)),
        plan_(plan),
        lines_(lines) {}

  void mix(const std::vector<Change>& order, int64_t begin, int64_t end) const {
    std::vector<T> saved(static_cast<size_t>(lines_.size));
    for (int64_t line = begin; line < end; ++line) {
      const int64_t offset = line * lines_.size;
      const int64_t size = std::min(lines_.size, stride_ - offset);
      for (const Change& change : order) {
        const MixedRow& row = plan_[static_cast<size_t>(change.row)];
        T* const own = data_ + change.row * stride_ + offset;
        const T* const other =
            change.takes_saved_row ? saved.data() : data_ + row.partner * stride_ + offset;
        if (change.saves_row) std::copy_n(own, size, saved.data());
        if (!row.box) {
          blend(own, other, row.keep, size);
        } else if (const int64_t y = line % lines_.height - row.box->top;
                   y >= 0 && y < row.box->height) {
          std::copy_n(other + row.box->left * lines_.pixel, row.box->width * lines_.pixel,
                      own + row.box->left * lines_.pixel);
        }
      }
    }
  }

 private:
  static void blend(T* own, const T* other, double keep, int64_t size) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, uint16_t>) {
      static const Mix<T> kMix = best_mix<T>();
      kMix(own, other, static_cast<float>(keep), static_cast<float>(1 - keep), size);
    } else {
      throw InternalError("mix rows: a mean of whole numbers");
    }
  }

  T* data_;
  int64_t stride_;
  const std::vector<MixedRow>& plan_;
  Lines lines_;
};

template <typename T>
void mix_in_place(at::Tensor& rows, const std::vector<MixedRow>& plan, bool has_boxes) {
  const std::vector<Change> order = order_of(plan);
  if (order.empty()) return;
  const Lines lines = lines_of(rows, has_boxes);
  const Mixer<T> mixer(rows, plan, lines);
  // Threads are worth their start from a few lines of all rows on.
  const int64_t grain =
      std::max<int64_t>(1, 8 * kLine / (lines.size * static_cast<int64_t>(order.size())));
  at::parallel_for(0, lines.count, grain,
                   [&](int64_t begin, int64_t end) { mixer.mix(order, begin, end); });
}

bool has_boxes(const std::vector<MixedRow>& plan) {
  return std::any_of(plan.begin(), plan.end(), [](const MixedRow& row) { return row.box; });
}

// [rows, 1, ...] on the device of `like`.
at::Tensor column(const std::vector<double>& values, const at::Tensor& like) {
  std::vector<int64_t> sizes(static_cast<size_t>(like.dim()), 1);
  sizes[0] = static_cast<int64_t>(values.size());
  const auto type = like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::tensor(values, at::kDouble).to(type).to(like.device()).reshape(sizes);
}

// Whether pixels are in the rows' boxes: [rows, 1, H, W] or [rows, H, W].
at::Tensor inside(const std::vector<MixedRow>& plan, const at::Tensor& like) {
  std::vector<double> edges[4];
  for (const MixedRow& row : plan) {
    const Region box = row.box.value_or(Region());
    edges[0].push_back(box.top);
    edges[1].push_back(box.top + box.height);
    edges[2].push_back(box.left);
    edges[3].push_back(box.left + box.width);
  }
  const auto options = like.options().dtype(at::kFloat);
  const at::Tensor y = at::arange(like.size(-2), options).unsqueeze(1);
  const at::Tensor x = at::arange(like.size(-1), options);
  return y.ge(column(edges[0], like))
      .logical_and(y.lt(column(edges[1], like)))
      .logical_and(x.ge(column(edges[2], like)))
      .logical_and(x.lt(column(edges[3], like)));
}

}  // namespace

void mix_rows(at::Tensor& rows, const std::vector<MixedRow>& plan) {
  if (rows.numel() == 0) return;
  const bool boxes = has_boxes(plan), is_dense = rows.is_contiguous() || is_channels_last(rows);
  if (!rows.is_cpu() || !is_dense) return mix_rows_by_operators(rows, plan);
  switch (rows.scalar_type()) {
    case at::kFloat: return mix_in_place<float>(rows, plan, boxes);
    case at::kBFloat16: return mix_in_place<uint16_t>(rows, plan, boxes);
    case at::kLong: return mix_in_place<int64_t>(rows, plan, boxes);
    default: return mix_rows_by_operators(rows, plan);
  }
}

void mix_rows_by_operators(at::Tensor& rows, const std::vector<MixedRow>& plan) {
  if (rows.numel() == 0 || plan.empty()) return;
  const auto size = static_cast<int64_t>(plan.size());
  std::vector<int64_t> partners;
  std::vector<double> keep, rest;
  bool is_blended = false;
  for (int64_t row = 0; row < size; ++row) {
    const MixedRow& mixed = plan[static_cast<size_t>(row)];
    const bool blends = mixed.is_mixed(row) && !mixed.box;
    partners.push_back(mixed.partner);
    keep.push_back(blends ? mixed.keep : 1);
    rest.push_back(blends ? 1 - mixed.keep : 0);
    is_blended |= blends;
  }
  const at::Tensor own = rows.narrow(0, 0, size);
  const at::Tensor others = rows.index_select(0, at::tensor(partners, at::kLong).to(rows.device()));
  at::Tensor mixed = own;
  if (is_blended) {
    const auto wide = rows.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    mixed = others.to(wide)
                .mul(column(rest, rows))
                .add(own.to(wide).mul(column(keep, rows)))
                .to(rows.scalar_type());
    // 0 * inf and 1 * x + 0 * y must not change a row that stays.
    if (std::any_of(rest.begin(), rest.end(), [](double x) { return x == 0; })) {
      mixed = at::where(column(rest, rows).gt(0), mixed, own);
    }
  }
  if (has_boxes(plan)) mixed = at::where(inside(plan, rows), others, mixed);
  own.copy_(mixed);
}

}  // namespace gallop::data

#pragma once

// Reductions of generated kernels, over rows, over columns and over all.

#include "gallop/compile/codegen/loop_operators.h"

namespace gallop::kernel {
namespace {

template <typename T>
inline constexpr T kLowest = -__builtin_inf();
template <>
inline constexpr int64_t kLowest<int64_t> = INT64_MIN;
template <typename T>
inline constexpr T kHighest = __builtin_inf();
template <>
inline constexpr int64_t kHighest<int64_t> = INT64_MAX;

struct Plus {
  template <typename T>
  static constexpr T kNeutral = 0;
  template <typename T>
  static T join(T a, T b) {
    return op_add(a, b);
  }
};
struct Larger {
  template <typename T>
  static constexpr T kNeutral = kLowest<T>;
  template <typename T>
  static T join(T a, T b) {
    return op_maximum(a, b);
  }
};
struct Smaller {
  template <typename T>
  static constexpr T kNeutral = kHighest<T>;
  template <typename T>
  static T join(T a, T b) {
    return op_minimum(a, b);
  }
};

template <typename Kind>
inline F32 join(const F32& a, const F32& b) {
  return Kind::join(a, b);
}
template <typename Kind, typename T>
inline Many<T> join(const Many<T>& a, const Many<T>& b) {
  return by_lanes(a, b, [](T x, T y) { return Kind::join(x, y); });
}

/// The type of a vector's lanes.
inline float lane_of(const F32&);
template <typename T>
inline T lane_of(const Many<T>&);

/// Lanes behind the first set to `neutral`.
template <typename Vector, typename T>
inline Vector keep(AllLanes, const Vector& a, T) {
  return a;
}
template <typename Vector, typename T>
inline Vector keep(FirstLanes lanes, const Vector& a, T neutral) {
  return select(mask_of(static_cast<uint16_t>((1U << lanes.count) - 1)), a, spread(neutral));
}

/// The lanes in the order of a tree.
template <typename Kind, typename Vector>
inline auto join_lanes(const Vector& a) {
  decltype(lane_of(a)) lanes[kLanes];
  to_array(a, lanes);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] = Kind::join(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}

/// Many elements, of a row or of all: every other vector in a slot of its own, which need not wait
/// for the one before.
template <typename Kind, typename Vector>
struct Reduction {
  using T = decltype(lane_of(Vector()));
  Vector slots[kSlots];

  Reduction() {
    for (Vector& slot : slots) slot = spread(Kind::template kNeutral<T>);
  }
  template <typename Lanes, typename Slot>
  void add(Lanes lanes, Slot, const Vector& a) {
    Vector& slot = slots[Slot::value];
    slot = join<Kind>(slot, keep(lanes, a, Kind::template kNeutral<T>));
  }
  void close_part() {}
  T result() const {
    const Vector all = join<Kind>(join<Kind>(slots[0], slots[1]), join<Kind>(slots[2], slots[3]));
    if constexpr (__is_same(Vector, F32)) {
      if (bits(is_nan(all)) != 0) return __builtin_nanf("");
      return __is_same(Kind, Larger) ? largest(all) : -largest(flip_sign(all));
    }
    return join_lanes<Kind>(all);
  }
  T total() const { return result(); }
};

inline double sum_of_lanes(const F32& a) { return static_cast<double>(sum(a)); }
inline double sum_of_lanes(const F64& a) { return join_lanes<Plus>(a); }

/// Sums of fractions: of a part in slots, of up to 64 parts, and in fp64 of those.
template <typename Vector>
struct FractionSum {
  Vector slots[kSlots], parts = zero();
  double whole = 0;
  int64_t count = 0;

  FractionSum() {
    for (Vector& slot : slots) slot = zero();
  }
  template <typename Lanes, typename Slot>
  void add(Lanes lanes, Slot, const Vector& a) {
    using T = decltype(lane_of(a));
    slots[Slot::value] = join<Plus>(slots[Slot::value], keep(lanes, a, T(0)));
  }
  void close_part() {
    parts = join<Plus>(parts,
                       join<Plus>(join<Plus>(slots[0], slots[1]), join<Plus>(slots[2], slots[3])));
    for (Vector& slot : slots) slot = zero();
    if (++count % 64 != 0) return;
    whole += sum_of_lanes(parts);
    parts = zero();
  }
  auto result() const { return static_cast<decltype(lane_of(parts))>(total()); }
  double total() const { return whole + sum_of_lanes(parts); }

  static Vector zero() { return spread(decltype(lane_of(Vector()))(0)); }
};
template <>
struct Reduction<Plus, F32> : FractionSum<F32> {};
template <>
struct Reduction<Plus, F64> : FractionSum<F64> {};

/// The totals of all blocks and parts, in eight lists.
template <typename Kind, typename T>
inline T join_totals(const T* totals, int64_t count) {
  T lists[8];
  for (T& list : lists) list = Kind::template kNeutral<T>;
  for (int64_t i = 0; i < count; ++i) lists[i % 8] = Kind::join(lists[i % 8], totals[i]);
  for (int64_t half = 4; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lists[i] = Kind::join(lists[i], lists[i + half]);
  }
  return lists[0];
}

/// Columns: `numbers` joined by the lanes of a.
template <typename Kind, typename Lanes, typename T, typename Vector>
inline void join_column(Lanes lanes, T* numbers, const Vector& a) {
  put(lanes, numbers, join<Kind>(get(lanes, numbers), a));
}
/// total joined by part, which starts again.
template <typename Kind, typename T>
inline void close_columns(T* part, T* total, int64_t count) {
  over_lanes(0, count, [&](int64_t i, auto lanes) {
    put(lanes, total + i, join<Kind>(get(lanes, total + i), get(lanes, part + i)));
    put(lanes, part + i, spread(Kind::template kNeutral<T>));
  });
}
template <typename Kind, typename T>
inline void start_columns(T* numbers, int64_t count) {
  over_lanes(0, count, [&](int64_t i, auto lanes) {
    put(lanes, numbers + i, spread(Kind::template kNeutral<T>));
  });
}
/// The lanes of all blocks, each of `columns` numbers: every eighth in a part of its own.
template <typename Kind, typename Lanes, typename T>
inline auto join_blocks(Lanes lanes, const T* totals, int64_t blocks, int64_t columns) {
  decltype(get(lanes, totals)) parts[8];
  for (auto& part : parts) part = spread(Kind::template kNeutral<T>);
  for (int64_t block = 0; block < blocks; ++block) {
    auto& part = parts[block % 8];
    part = join<Kind>(part, get(lanes, totals + block * columns));
  }
  for (int64_t half = 4; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) parts[i] = join<Kind>(parts[i], parts[i + half]);
  }
  return parts[0];
}

}  // namespace
}  // namespace gallop::kernel

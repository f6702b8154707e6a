#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

namespace gallop {

/// Sizes read from files go through these before anything is allocated: the result is empty where
/// the exact sum or product does not fit the type.
template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
constexpr std::optional<T> checked_multiply(T a, T b) {
  T result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// Product of all values, empty on overflow or where a value is negative.
template <typename Range>
constexpr std::optional<int64_t> checked_product(const Range& values) {
  int64_t product = 1;
  for (int64_t value : values) {
    if (value < 0) return std::nullopt;
    auto next = checked_multiply(product, value);
    if (!next) return std::nullopt;
    product = *next;
  }
  return product;
}

/// `value` as a `To`, empty where it does not fit.
template <std::integral To, std::integral From>
constexpr std::optional<To> checked_cast(From value) {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

}  // namespace gallop

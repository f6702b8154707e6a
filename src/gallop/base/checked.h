#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

namespace gallop {

/// Arithmetic for sizes read from files, to be checked before allocating: the result is empty if
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

/// The product of all values; empty on overflow or for a negative value.
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

/// Converts `value` to `To`; empty if it does not fit.
template <std::integral To, std::integral From>
constexpr std::optional<To> checked_cast(From value) {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

}  // namespace gallop

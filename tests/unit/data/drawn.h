#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "gallop/data/augment.h"

namespace gallop::data {

/// The number of draws that tests of distributions count.
inline constexpr int64_t kDraws = 100'000;

inline Philox random_of_draw(int64_t draw) {
  return {1, Purpose::kPixels, static_cast<uint64_t>(draw / 1000),
          static_cast<uint64_t>(draw % 1000)};
}

/// The operations of one draw.
inline std::vector<pixels::Operation> drawn(const Augmentation& augmentation,
                                            const ImageShape& shape, int64_t draw) {
  std::vector<pixels::Operation> operations;
  Philox random = random_of_draw(draw);
  augmentation.draw(shape, random, operations);
  return operations;
}

/// Equal for equal operations, without mixtures.
inline std::string text_of(const std::vector<pixels::Operation>& operations) {
  std::string text;
  for (const pixels::Operation& operation : operations) {
    text += fmt::format(" {}", operation.index());
    const auto add = [&](double value) { text += fmt::format(",{}", value); };
    std::visit(
        [&]<typename T>(const T& one) {
          if constexpr (requires { one.factor; }) add(one.factor);
          if constexpr (requires { one.addend; }) add(one.addend);
          if constexpr (requires { one.sigma_x; }) add(one.sigma_x);
          if constexpr (requires { one.bits; }) add(one.bits);
          if constexpr (requires { one.threshold; }) add(one.threshold);
          if constexpr (requires { one.count; }) add(one.count);
          if constexpr (requires { one.matrix; }) {
            for (const double value : one.matrix) add(value);
          }
        },
        operation);
  }
  return text;
}

}  // namespace gallop::data

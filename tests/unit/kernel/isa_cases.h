#pragma once

#include <array>
#include <initializer_list>
#include <ostream>

#include <gtest/gtest.h>

#include "gallop/kernel/isa.h"

namespace gallop::kernel {

inline void PrintTo(Isa isa, std::ostream* out) {
  constexpr std::array kNames = {"baseline", "avx2", "avx512", "avx512-bf16", "amx"};
  *out << kNames.at(static_cast<size_t>(isa));
}

/// All but the greatest, each to be tried on some cases.
inline constexpr auto kLesserIsas = {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16};

/// A test for each instruction set, skipped where the machine lacks it.
class IsaTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!has(GetParam())) GTEST_SKIP() << "this machine does not have these instructions";
  }
};

inline auto every_isa() {
  return testing::Values(Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx);
}

}  // namespace gallop::kernel

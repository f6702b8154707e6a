#pragma once

#include <gtest/gtest.h>

#include "unit/compile/stock_network.h"

namespace gallop::compile {

/// Networks as users of LibTorch write them, in fp32 and under autocast.
class Patterns : public testing::TestWithParam<bool> {
 protected:
  static StockNetwork in_format(StockNetwork network) {
    network.bf16 = GetParam();
    return network;
  }
};

/// The name of a case: "Fp32" or "Bf16".
inline std::string format_name(const testing::TestParamInfo<bool>& tested) {
  return tested.param ? "Bf16" : "Fp32";
}

}  // namespace gallop::compile

#include "gallop/kernel/peak.h"

#include <cmath>

#include <gtest/gtest.h>

#include "gallop/kernel/cpu/peak.h"

namespace gallop::kernel {
namespace {

TEST(Peak, CountsTheFlopsOfEveryIsa) {
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx}) {
    if (!has(isa)) continue;
    const auto kernels = kernels_for<PeakKernels>(isa);
    // Multiply-adds of 16 lanes in 6 or 12 sums.
    const double each = isa < Isa::kAvx512 ? 2 * 16 * 6 : 2 * 16 * 12;
    EXPECT_EQ(kernels.fp32(5), 5 * each);
    EXPECT_EQ(kernels.bf16 != nullptr, isa >= Isa::kAvx512Bf16);
    if (kernels.bf16 == nullptr) continue;
    const double pairs = isa == Isa::kAmx ? 4 * 2 * 16 * 16 * 32 : 2 * each;
    EXPECT_EQ(kernels.bf16(5), 5 * pairs);
  }
}

TEST(Peak, IsMeasured) {
  for (const double rate : {peak_flops_per_second(c10::kFloat), peak_bytes_per_second(1e5)}) {
    EXPECT_TRUE(std::isfinite(rate) && rate > 0) << rate;
  }
}

}  // namespace
}  // namespace gallop::kernel

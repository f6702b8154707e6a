#include "gallop/kernel/dropout.h"

#include <cmath>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/kernel/cpu/dropout.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

at::Tensor state(int64_t seed, int64_t step) { return at::tensor({seed, step}); }

// The 16 bits that decide over number i, by the scalar form.
uint32_t bits_of(uint64_t seed, uint64_t step, uint32_t call, int64_t i) {
  const int64_t vector = i % kDropoutGroup / kLanes;
  const auto counter = static_cast<uint32_t>(i / kDropoutGroup * kLanes + i % kLanes);
  const auto words =
      philox4x32(Philox::key_of(seed, Purpose::kDropout),
                 {counter, call, static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)});
  const uint32_t word = words[static_cast<size_t>(vector / 2)];
  return vector % 2 == 0 ? word & 0xffff : word >> 16;
}

class DropoutOfIsa : public IsaTest {};

TEST_P(DropoutOfIsa, MatchesTheScalarImplementation) {
  const uint64_t seed = 0x0123456789abcdef, step = 0xfedcba9876543210;
  const auto key = Philox::key_of(seed, Purpose::kDropout);
  const DropoutDraw draw{
      .key = {key[0], key[1]},
      .counter = {7, static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)},
      .threshold = 20000,
      .scale = 1.5F};
  const auto kernels = kernels_for<DropoutKernels>(GetParam());
  for (const int64_t count : {1, 15, 16, 17, 128, 129, 1000}) {
    const at::Tensor x = at::randn({count}), y = at::empty_like(x);
    const at::Tensor narrow = x.to(at::kBFloat16), narrow_y = at::empty_like(narrow);
    constexpr int64_t kGroup = 3;
    kernels.fp32(draw, kGroup, x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), count);
    kernels.bf16(draw, kGroup, static_cast<const Bf16*>(narrow.data_ptr()),
                 static_cast<Bf16*>(narrow_y.data_ptr()), count);
    for (int64_t i = 0; i < count; ++i) {
      const bool kept = bits_of(seed, step, 7, kGroup * kDropoutGroup + i) >= 20000;
      EXPECT_EQ(y[i].item<float>(), kept ? 1.5F * x[i].item<float>() : 0) << i;
      const auto wanted = (narrow[i].to(at::kFloat) * 1.5F).to(at::kBFloat16).item<float>();
      EXPECT_EQ(narrow_y[i].item<float>(), kept ? wanted : 0) << i;
    }
  }
}

TEST(Dropout, OfAPartHasTheMaskOfTheWhole) {
  const DropoutKey key{.seed_and_step = state(3, 4), .call = 5};
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor whole = at::randn({3, 40, 9}).to(type);
    const at::Tensor dropped = dropout(whole, 0.3, key);
    const auto expect_part = [&](const std::vector<DropoutPart::Range>& rows) {
      DropoutPart part{.rows = 3, .columns = 40 * 9};
      std::vector<at::Tensor> own, wanted;
      for (const auto& [begin, size] : rows) {
        part.ranges.push_back({begin * 9, size * 9});
        own.push_back(whole.narrow(1, begin, size));
        wanted.push_back(dropped.narrow(1, begin, size));
      }
      EXPECT_TRUE(at::equal(dropout(at::cat(own, 1), 0.3, key, part), at::cat(wanted, 1)))
          << rows.front().begin << " " << rows.front().size;
    };
    expect_part({{0, 40}});
    expect_part({{0, 1}});
    expect_part({{13, 20}});
    expect_part({{39, 1}});
    expect_part({{3, 10}, {29, 7}});
    expect_part({{0, 0}, {39, 1}});
  }
  EXPECT_THROW(dropout(at::ones({3, 4}), 0.3, key, {.rows = 3, .columns = 5, .ranges = {{2, 4}}}),
               InternalError);
  EXPECT_THROW(dropout(at::ones({3, 4}), 0.3, key, {.rows = 3, .columns = 5, .ranges = {{0, 3}}}),
               InternalError);
}

INSTANTIATE_TEST_SUITE_P(Kernel, DropoutOfIsa, every_isa());

TEST(Dropout, KeepsTheExpectedFractionAndMean) {
  const int64_t count = 1'000'000;
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    const auto y = dropout(at::ones({count}), p, {state(1, 2), 1});
    const double dropped = at::eq(y, 0).sum().item<double>() / static_cast<double>(count);
    EXPECT_NEAR(dropped, p, 4 * std::sqrt(p * (1 - p) / static_cast<double>(count)) + 1e-5);
    // Kept elements are scaled so that the expectation is exact.
    const double share = std::round(p * 65536) / 65536;
    EXPECT_NEAR(y.max().item<double>(), 1 / (1 - share), 1e-6);
  }
  // Almost all, but not so many that nothing could be kept.
  EXPECT_TRUE(
      std::isfinite(dropout(at::ones({100}), 0.9999999, {state(1, 2), 1}).sum().item<float>()));
}

TEST(Dropout, DrawsDependOnSeedStepCallAndPosition) {
  const auto x = at::ones({10'000});
  const auto first = dropout(x, 0.5, {state(1, 2), 3});
  EXPECT_TRUE(first.equal(dropout(x, 0.5, {state(1, 2), 3})));
  for (const auto& key :
       {DropoutKey{state(2, 2), 3}, DropoutKey{state(1, 3), 3}, DropoutKey{state(1, 2), 4},
        DropoutKey{state(1, int64_t{2} << 32), 3}, DropoutKey{state(int64_t{1} << 32, 2), 3}}) {
    const auto other = dropout(x, 0.5, key);
    // Independent draws agree half of the time.
    EXPECT_NEAR(at::eq(first, other).to(at::kFloat).mean().item<double>(), 0.5, 0.03);
  }
  const auto shifted = first.narrow(0, 128, 5000);
  EXPECT_NEAR(at::eq(first.narrow(0, 0, 5000), shifted).to(at::kFloat).mean().item<double>(), 0.5,
              0.04);
}

TEST(Dropout, DropsTheSameForBothDataTypesAndAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const auto x = at::randn({777, 333});
  std::vector<at::Tensor> results;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    results.push_back(dropout(x, 0.3, {state(5, 6), 7}));
  }
  at::set_num_threads(threads);
  for (const auto& result : results) EXPECT_TRUE(result.equal(results[0]));
  const auto narrow = dropout(x.to(at::kBFloat16), 0.3, {state(5, 6), 7});
  EXPECT_TRUE(at::eq(narrow, 0).equal(at::eq(results[0], 0)));
}

TEST(Dropout, RejectsUnsupportedInputs) {
  const auto x = at::randn({4, 6});
  EXPECT_TRUE(takes_dropout(x));
  EXPECT_FALSE(takes_dropout(x.t()));
  EXPECT_FALSE(takes_dropout(x.to(at::kDouble)));
  EXPECT_FALSE(takes_dropout(x.to(at::kMeta)));
  EXPECT_FALSE(takes_dropout(x.narrow(0, 0, 0)));
  EXPECT_THROW(dropout(x.t(), 0.5, {state(1, 2), 3}), InternalError);
  EXPECT_THROW(dropout(x, 1, {state(1, 2), 3}), InternalError);
  EXPECT_THROW(dropout(x, 0.5, {state(1, 2).to(at::kInt), 3}), InternalError);
  EXPECT_THROW(dropout(x, 0.5, {state(1, 2), -1}), InternalError);
}

}  // namespace
}  // namespace gallop::kernel

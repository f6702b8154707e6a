#include "gallop/train/async_results.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/data/fake_accelerator.h"

namespace gallop::train {
namespace {

constexpr int64_t kNumbers = 4;

// The device copies as late as possible: a reader that does not wait sees the previous content.
at::Tensor on_device(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::kDouble).to(data::fake_accelerator());
}

TEST(AsyncResults, CopiesWithoutAWaitAndWaitsForTheOldestAlone) {
  const auto readings = make_async_results(data::fake_accelerator(), kNumbers);
  EXPECT_TRUE(readings->is_there());
  std::vector<std::vector<double>> wanted;
  std::vector<at::Tensor> numbers;
  for (double step = 0; step < 100; ++step) {
    wanted.push_back(wanted.size() % 3 == 0 ? std::vector{step, step / 2}
                                            : std::vector{step, -step, step * 1e300});
    numbers.push_back(on_device(wanted.back()));
  }
  const int64_t waits = data::host_waits();
  size_t ahead = 0;
  while (!readings->is_full()) readings->push(numbers[ahead++]);
  EXPECT_GE(ahead, 16U);
  EXPECT_FALSE(readings->is_there());
  EXPECT_EQ(data::host_waits(), waits);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(readings->pop(), wanted[i]);
    EXPECT_EQ(data::host_waits(), waits + static_cast<int64_t>(i) + 1);
    // The slot is free again.
    if (ahead < numbers.size()) readings->push(numbers[ahead++]);
  }
}

TEST(AsyncResults, RefusesWhatHasNoRoom) {
  const auto readings = make_async_results(data::fake_accelerator(), kNumbers);
  EXPECT_THROW(readings->pop(), InternalError);
  EXPECT_THROW(readings->push(on_device({1, 2, 3, 4, 5})), InternalError);
  EXPECT_THROW(readings->push(at::full({2}, 1.0F)), InternalError);
  while (!readings->is_full()) readings->push(on_device({1}));
  EXPECT_THROW(readings->push(on_device({1})), InternalError);
}

TEST(AsyncResults, TheCpuNeedsNone) { EXPECT_EQ(make_async_results(at::kCPU, kNumbers), nullptr); }

}  // namespace
}  // namespace gallop::train

#include "gallop/parallel/power_sgd.h"

#include <limits>
#include <mutex>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "gallop/parallel/sums.h"
#include "unit/parallel/ranks.h"

namespace gallop::parallel {
namespace {

constexpr int kProcesses = 3;

at::Tensor randn(int rank, std::vector<int64_t> shape) {
  at::Generator own = at::globalContext().defaultGenerator(at::kCPU).clone();
  own.set_current_seed(static_cast<uint64_t>(rank) + 1);
  return at::randn(shape, own);
}

// The results of each process after `steps` all-reduces of the same gradients, and the exact mean.
struct Summed {
  std::vector<std::vector<at::Tensor>> last, mean;
};

Summed sum_over_ranks(const std::function<std::vector<at::Tensor>(int rank)>& gradients_of,
                      int64_t rank, int steps) {
  Summed summed;
  summed.last.resize(kProcesses);
  summed.mean.resize(kProcesses);
  run_ranks(kProcesses, [&](Collectives& collectives) {
    const at::NoGradGuard no_grad;
    const CollectivesScope scope(collectives);
    const auto own = gradients_of(collectives.rank());
    std::vector<at::Tensor> gradients, mean;
    for (const at::Tensor& one : own) {
      gradients.push_back(at::zeros_like(one));
      mean.push_back(at::zeros_like(one));
    }
    PowerSgd power(gradients, rank, kProcesses, /*seed=*/7);
    for (int step = 0; step < steps; ++step) {
      for (size_t i = 0; i < own.size(); ++i) gradients[i].copy_(own[i]);
      power.start();
      power.finish();
      for (size_t i = 0; i < own.size(); ++i) mean[i].add_(gradients[i], 1.0 / steps);
    }
    summed.last[static_cast<size_t>(collectives.rank())] = gradients;
    summed.mean[static_cast<size_t>(collectives.rank())] = mean;
  });
  return summed;
}

at::Tensor sum_of(const std::function<std::vector<at::Tensor>(int rank)>& gradients_of,
                  size_t index) {
  at::Tensor sum = gradients_of(0)[index].clone();
  for (int rank = 1; rank < kProcesses; ++rank) sum.add_(gradients_of(rank)[index]);
  return sum;
}

TEST(PowerSgd, IsExactForMatricesOfLowRank) {
  const at::Tensor columns = randn(100, {40, 2});
  const auto gradients_of = [&](int rank) {
    return std::vector<at::Tensor>{at::matmul(columns, randn(rank, {2, 60}))};
  };
  const auto summed = sum_over_ranks(gradients_of, 2, 1);
  for (const auto& of_process : summed.last) {
    EXPECT_TRUE(at::allclose(of_process[0], sum_of(gradients_of, 0), 1e-4, 1e-4));
    EXPECT_TRUE(at::equal(of_process[0], summed.last[0][0])) << "the same bits in all";
  }
}

TEST(PowerSgd, DoesNotCompressVectorsAndSmallMatrices) {
  const auto gradients_of = [](int rank) {
    return std::vector<at::Tensor>{randn(rank, {100}), randn(rank + 10, {40, 60}),
                                   randn(rank + 20, {3, 4})};
  };
  const auto summed = sum_over_ranks(gradients_of, 4, 1);
  EXPECT_TRUE(at::allclose(summed.last[0][0], sum_of(gradients_of, 0)));
  EXPECT_FALSE(at::allclose(summed.last[0][1], sum_of(gradients_of, 1)));
  EXPECT_TRUE(at::allclose(summed.last[0][2], sum_of(gradients_of, 2)));
}

// Algorithm 2 of the paper: the approximation error is added to the next gradient.
TEST(PowerSgd, FeedsErrorsBack) {
  const auto gradients_of = [](int rank) { return std::vector<at::Tensor>{randn(rank, {20, 30})}; };
  const at::Tensor wanted = sum_of(gradients_of, 0);
  const auto error_after = [&](int steps) {
    const auto summed = sum_over_ranks(gradients_of, 1, steps);
    return summed.mean[0][0].sub(wanted).norm().item<double>() / wanted.norm().item<double>();
  };
  const double early = error_after(30), late = error_after(300);
  EXPECT_LT(late, early / 5);
  EXPECT_LT(late, 0.05);
}

// The sum of all errors is preserved; the factors of all processes are the same.
TEST(PowerSgd, ResumesWithAnotherNumberOfProcesses) {
  const auto single = single_process_group();
  const CollectivesScope scope(*single);
  const auto make = [](int seed, int processes) {
    return PowerSgd({randn(seed, {20, 30})}, /*rank=*/1, processes, /*seed=*/7);
  };
  std::vector<NamedTensors> saved;
  for (int rank = 0; rank < 3; ++rank) {
    PowerSgd power = make(rank, 3);
    power.start();
    power.finish();
    saved.push_back(power.rank_state());
    ASSERT_EQ(saved.back()[0].name, "error.7");
    EXPECT_GT(saved.back()[0].tensor.norm().item<double>(), 0.1);
  }
  std::vector<NamedTensors> taken;
  for (int rank = 0; rank < 2; ++rank) {
    PowerSgd power = make(rank + 10, 2);
    for (const NamedTensors& one : saved) power.add_rank_state(one, 0.5);
    taken.push_back(power.rank_state());
  }
  const auto sum = [](const std::vector<NamedTensors>& all) {
    at::Tensor total = at::zeros_like(all[0][0].tensor);
    for (const NamedTensors& one : all) total.add_(one[0].tensor);
    return total;
  };
  EXPECT_TRUE(at::allclose(sum(taken), sum(saved)));
  EXPECT_TRUE(at::equal(taken[0][1].tensor, saved[2][1].tensor));
}

// A gradient that is not finite, of one process, leaves no trace after its step.
TEST(PowerSgd, ForgetsWhatIsNotFinite) {
  run_ranks(kProcesses, [&](Collectives& collectives) {
    const at::NoGradGuard no_grad;
    const CollectivesScope scope(collectives);
    const at::Tensor gradient = at::zeros({20, 30}), own = randn(collectives.rank(), {20, 30});
    PowerSgd power({gradient}, /*rank=*/1, kProcesses, /*seed=*/7);
    const auto step = [&](const at::Tensor& value) {
      gradient.copy_(value);
      power.start();
      power.finish();
      return gradient.isfinite().all().item<bool>();
    };
    EXPECT_TRUE(step(own));
    at::Tensor broken = own.clone();
    if (collectives.rank() == 1) broken[3][4].fill_(std::numeric_limits<float>::infinity());
    EXPECT_FALSE(step(broken));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(step(own));
  });
}

// Convolution kernels in channels_last, as one matrix of outputs and the rest.
TEST(PowerSgd, SupportsEveryMemoryFormat) {
  const auto gradients_of = [](int rank) {
    return std::vector<at::Tensor>{
        randn(rank, {32, 16, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast),
        randn(rank + 10, {60, 40}).t()};
  };
  const auto summed = sum_over_ranks(gradients_of, 2, 300);
  for (const size_t i : {0, 1}) {
    const at::Tensor wanted = sum_of(gradients_of, i);
    EXPECT_LT(summed.mean[0][i].sub(wanted).norm().item<double>(),
              0.2 * wanted.norm().item<double>());
  }
}

}  // namespace
}  // namespace gallop::parallel

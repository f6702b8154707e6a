// Which gradients ddp all-reduces together, and when.
#include "gallop/parallel/ddp.h"

#include <map>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/config/resolve.h"
#include "gallop/parallel/rank_order_sums.h"
#include "gallop/parallel/sums.h"
#include "unit/config/component_of.h"
#include "unit/parallel/fake_collectives.h"
#include "unit/parallel/ranks.h"

namespace gallop::parallel {
namespace {

// Four parameters of 1 KiB, which a backward pass comes to in another order than from the last.
struct Network {
  NamedTensors parameters;

  Network() {
    for (const char* name : {"a", "b", "c", "d"}) {
      parameters.push_back({name, at::full({256}, 1.0F).requires_grad_(true)});
    }
  }
  const at::Tensor& operator[](size_t i) const { return parameters[i].tensor; }

  // Gradients in the order b, d, a, c; that of the i-th is (i + 1) * factor.
  void backward(double factor) const {
    at::Tensor x = parameters[2].tensor * 3;
    for (const size_t i : {0, 3, 1}) {
      x = x + parameters[i].tensor * static_cast<double>(i + 1);
    }
    x.sum().backward(at::full({}, factor));
  }
  void drop_gradients() const {
    for (const auto& [name, tensor] : parameters) tensor.mutable_grad().reset();
  }
};

const std::vector<std::string> kOrder = {"b", "d", "a", "c"};

// The bucket in which each parameter's gradient lies after a step, in the parameters' order.
std::vector<size_t> buckets_of(const Network& network, const std::vector<std::string>& order) {
  FakeCollectives fake(3, 64);
  const CollectivesScope scope(fake);
  const auto ddp = make_ddp({.bucket = "2 KiB"}, fake, {network.parameters, {}, order});
  ddp->begin_gradient_sync({.rows = 1});
  network.backward(1);
  ddp->finish_gradient_sync();
  const NamedTensors state = ddp->state();
  std::vector<size_t> buckets;
  for (const auto& [name, tensor] : network.parameters) {
    for (size_t i = 0; i < state.size(); ++i) {
      if (tensor.grad().is_alias_of(state[i].tensor)) buckets.push_back(i);
    }
  }
  return buckets;
}

TEST(Ddp, GroupsGradientsInTheirOrder) {
  EXPECT_EQ(buckets_of(Network(), kOrder), (std::vector<size_t>{1, 0, 1, 0}));
  // If the order is unknown, from the last parameter on.
  EXPECT_EQ(buckets_of(Network(), {}), (std::vector<size_t>{1, 1, 0, 0}));
}

// The number of all-reduces started once the gradients of a number of parameters are ready.
std::vector<int64_t> started_after(const std::vector<std::string>& order) {
  const Network network;
  FakeCollectives fake(0, 64);
  const CollectivesScope scope(fake);
  const auto ddp = make_ddp({.bucket = "1 KiB"}, fake, {network.parameters, {}, order});
  ddp->begin_gradient_sync({.rows = 1});
  std::vector<int64_t> started;
  for (const size_t i : {1, 3, 0, 2}) {
    network[i].sum().backward();
    started.push_back(static_cast<int64_t>(fake.calls.size()));
  }
  ddp->finish_gradient_sync();
  return started;
}

TEST(Ddp, StartsEachAllReduceAsSoonAsItsGradientsAreReady) {
  EXPECT_EQ(started_after(kOrder), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(started_after({}), (std::vector<int64_t>{0, 1, 1, 4}));
  // What was not seen comes last, and names that are no parameters' count for nothing.
  EXPECT_EQ(started_after({"b", "unknown"}), (std::vector<int64_t>{1, 2, 2, 4}));
}

TEST(Ddp, MicroBatchesAccumulateInTheBucket) {
  const Network network;
  FakeCollectives fake(0, 64);
  const CollectivesScope scope(fake);
  const auto ddp = make_ddp({.bucket = "2 KiB"}, fake, {network.parameters, {}, kOrder});
  const NamedTensors state = ddp->state();
  ASSERT_EQ(state.size(), 2);
  for (int step = 0; step < 2; ++step) {
    network.drop_gradients();
    network.backward(1);
    network.backward(1);
    for (size_t i = 0; i < 4; ++i) {
      const at::Tensor& gradient = network[i].grad();
      const size_t bucket = i == 1 || i == 3 ? 0 : 1;
      EXPECT_TRUE(gradient.is_alias_of(state[bucket].tensor)) << network.parameters[i].name;
    }
    EXPECT_TRUE(fake.calls.empty()) << "nothing is summed before the last micro-batch";
    ddp->begin_gradient_sync({.rows = 1});
    network.backward(0.5);
    ddp->finish_gradient_sync();
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(at::equal(network[i].grad(), at::full({256}, 2.5F * static_cast<float>(i + 1))))
          << network.parameters[i].name;
    }
    fake.calls.clear();
  }
}

TEST(RankOrderSums, FreeABucketOnDemandOnceItIsAddedUp) {
  constexpr int kProcesses = 4;
  const Network network;
  FakeCollectives fake(1, kProcesses);
  const CollectivesScope scope(fake);
  GradientBuckets buckets({{network[0]}, {network[1]}, {network[2]}, {network[3]}},
                          GradientBuckets::Memory::kOnDemand);
  const auto sizes = equal_parts(buckets, kProcesses);
  const auto own = own_parts(buckets, sizes, fake.rank());
  const auto sums = make_rank_order_sums(buckets, sizes, own, /*gathers=*/false);
  const auto in_use = [&] {
    size_t count = 0;
    for (size_t i = 0; i < buckets.size(); ++i) count += buckets.bucket(i).defined() ? 1 : 0;
    return count;
  };
  for (const bool accumulates : {false, true}) {
    sums->begin(accumulates);
    buckets.empty();
    for (size_t i = 0; i < 4; ++i) {
      network[i].mutable_grad() = at::ones({256});
      EXPECT_TRUE(buckets.fill(i));
      EXPECT_FALSE(network[i].grad().defined());
      sums->start(i);
      EXPECT_EQ(in_use(), i == 0 ? 1 : i == 3 ? 0 : 2) << "two are being summed";
    }
    for (const at::Tensor& sum : own) EXPECT_EQ(sum.numel(), 256 / kProcesses);
  }
}

TEST(Ddp, ReportsParametersWithoutAGradientOnce) {
  const Network network;
  FakeCollectives fake(0, 64);
  const CollectivesScope scope(fake);
  const auto ddp = make_ddp({}, fake, {network.parameters, {}});
  const auto step = [&](bool has_samples, size_t used) {
    network.drop_gradients();
    ddp->begin_gradient_sync({.rows = 1});
    if (has_samples) network[used].sum().backward();
    ddp->finish_gradient_sync();
  };
  step(false, 0);
  EXPECT_TRUE(ddp->unused().empty()) << "a process without samples knows of none";
  step(true, 1);
  EXPECT_EQ(ddp->unused(), (std::vector<std::string>{"a", "c", "d"}));
  step(true, 2);
  EXPECT_EQ(ddp->unused(), (std::vector<std::string>{"a", "c", "d"}));
  EXPECT_TRUE(at::equal(network[1].grad(), at::full({256}, 0.0F)));
}

// The weights of all processes after three steps, by parameter name.
std::map<std::string, at::Tensor> summed(int size, const std::string& options,
                                         const std::vector<std::string>& order) {
  std::map<std::string, at::Tensor> results;
  run_ranks(size, [&](Collectives& collectives) {
    const CollectivesScope scope(collectives);
    NamedTensors parameters;
    for (const char* name : {"a", "b", "c", "d"}) {
      parameters.push_back({name, at::ones({40, 30}).requires_grad_(true)});
    }
    static const auto kStrategies = built_in_strategies();
    const auto ddp = kStrategies.build(config::component_of(kStrategies, options), collectives,
                                       {parameters, {}, order});
    at::Generator own = at::globalContext().defaultGenerator(at::kCPU).clone();
    own.set_current_seed(static_cast<uint64_t>(collectives.rank()) + 1);
    for (int step = 0; step < 3; ++step) {
      for (const auto& [name, tensor] : parameters) tensor.mutable_grad().reset();
      std::vector<at::Tensor> gradients;
      for (size_t i = 0; i < parameters.size(); ++i) {
        gradients.push_back(at::randn({40, 30}, own));
      }
      ddp->begin_gradient_sync({.rows = 1});
      at::Tensor sum;
      for (size_t i = 0; i < parameters.size(); ++i) {
        const at::Tensor one = (parameters[i].tensor * gradients[i]).sum();
        sum = sum.defined() ? sum + one : one;
      }
      sum.backward();
      ddp->finish_gradient_sync();
    }
    if (collectives.rank() != 0) return;
    for (const auto& [name, tensor] : parameters) results[name] = tensor.grad().clone();
  });
  return results;
}

class CompressedDdp : public testing::TestWithParam<std::string> {};

TEST_P(CompressedDdp, BitsOfTwoProcessesDoNotDependOnBuckets) {
  const std::string compress = " compress=" + GetParam();
  const auto whole = summed(2, "ddp bucket=25MiB" + compress, kOrder);
  ASSERT_EQ(whole.size(), 4);
  for (const char* bucket : {"1KiB", "5KiB", "10KiB"}) {
    const auto parts = summed(2, std::string("ddp bucket=") + bucket + compress, kOrder);
    for (const auto& [name, tensor] : whole) {
      EXPECT_TRUE(at::equal(parts.at(name), tensor)) << name << " in buckets of " << bucket;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CompressedDdp, testing::Values("none", "bf16", "fp16", "powersgd"),
                         [](const auto& tested) { return tested.param; });

TEST(Ddp, BitsOfSumsInRankOrderDoNotDependOnBuckets) {
  for (const int size : {2, 3, 5}) {
    const auto whole = summed(size, "ddp sum_order=rank bucket=25MiB", kOrder);
    ASSERT_EQ(whole.size(), 4);
    for (const char* bucket : {"1KiB", "5KiB", "10KiB"}) {
      const auto parts =
          summed(size, std::string("ddp sum_order=rank bucket=") + bucket, {"d", "a"});
      for (const auto& [name, tensor] : whole) {
        EXPECT_TRUE(at::equal(parts.at(name), tensor)) << name << " in buckets of " << bucket;
      }
    }
    // The gradients of the third step, in order.
    std::map<std::string, at::Tensor> wanted;
    for (int rank = 0; rank < size; ++rank) {
      at::Generator own = at::globalContext().defaultGenerator(at::kCPU).clone();
      own.set_current_seed(static_cast<uint64_t>(rank) + 1);
      std::map<std::string, at::Tensor> gradients;
      for (int step = 0; step < 3; ++step) {
        for (const char* name : {"a", "b", "c", "d"}) gradients[name] = at::randn({40, 30}, own);
      }
      for (const auto& [name, gradient] : gradients) {
        wanted[name] = rank == 0 ? gradient : wanted[name] + gradient;
      }
    }
    for (const auto& [name, tensor] : wanted)
      EXPECT_TRUE(at::equal(whole.at(name), tensor)) << name;
  }
}

TEST(Ddp, BucketsOfManyRanksChangeOnlyTheRounding) {
  const auto whole = summed(5, "ddp bucket=25MiB", kOrder);
  const auto parts = summed(5, "ddp bucket=1KiB", {});
  for (const auto& [name, tensor] : whole) {
    EXPECT_LT((parts.at(name) - tensor).abs().max().item<float>(), 1e-5) << name;
  }
}

TEST(Ddp, ParsesSizesInBytesOrAuto) {
  static const auto kStrategies = built_in_strategies();
  config::component_of(kStrategies, "ddp bucket=auto");
  try {
    config::component_of(kStrategies, "ddp bucket=many");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(
        std::string(error.what()).find("must be a number of bytes, such as '25 MiB', or auto"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace gallop::parallel

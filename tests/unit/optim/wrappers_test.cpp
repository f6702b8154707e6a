#include <cmath>
#include <functional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/optim/wrapped.h"

namespace gallop::optim {
namespace {

at::Tensor fp32(double value) { return at::scalar_tensor(value, at::TensorOptions(at::kFloat)); }

at::Tensor numbers(at::IntArrayRef shape, double scale) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(1, count + 1, at::TensorOptions(at::kFloat)).mul(scale).sin().reshape(shape);
}

/// A model of a matrix, a bias, a statistic and a counter, in training.
struct Training {
  NamedTensors parameters = {{"weight", numbers({7, 5}, 0.3)}, {"bias", numbers({5}, 0.7)}};
  NamedTensors buffers = {{"running_mean", numbers({5}, 0.2)},
                          {"num_batches_tracked", at::zeros({}, at::kLong)}};
  std::unique_ptr<Optimizer> optimizer;
  int64_t steps = 0;

  explicit Training(const std::string& wrappers, const std::string& name = "sgd")
      : optimizer(make_wrapped(name, wrappers, parameters, buffers, kHundredSteps)) {}

  void step(const at::Tensor& found_inf = {}) {
    steps += 1;
    for (auto& [name, tensor] : parameters) {
      tensor.mutable_grad() = numbers(tensor.sizes(), 0.1 * static_cast<double>(steps));
    }
    // As in a forward pass.
    buffers[0].tensor.add_(0.25);
    buffers[1].tensor.add_(1);
    optimizer->step(fp32(0.1), {}, found_inf);
  }

  NamedTensors model() const {
    NamedTensors all = parameters;
    all.insert(all.end(), buffers.begin(), buffers.end());
    return all;
  }

  // Copies of all numbers of the model in fp64.
  std::vector<at::Tensor> copies() const {
    std::vector<at::Tensor> copies;
    for (const auto& [name, tensor] : model()) copies.push_back(tensor.to(at::kDouble).clone());
    return copies;
  }
};

std::string error_of(const std::string& wrappers, const std::string& optimizer = "sgd",
                     const schedule::RunLength& length = kHundredSteps) {
  try {
    Training training("[]");
    make_wrapped(optimizer, wrappers, training.parameters, training.buffers, length);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// torch.optim.swa_utils: AveragedModel copies the first time, then lerps by 1 - decay with
// get_ema_multi_avg_fn, or by 1 / (n + 1), in both cases with use_buffers.
void expect_average(const std::string& wrappers, int64_t first, int64_t every,
                    const std::function<double(double)>& share_of) {
  SCOPED_TRACE(wrappers);
  Training bare("[]"), wrapped(wrappers);
  std::vector<at::Tensor> average = bare.copies();
  double n = 0;
  for (int64_t t = 1; t <= 30; ++t) {
    bare.step();
    wrapped.step();
    if (t >= first && (t - first) % every == 0) {
      const std::vector<at::Tensor> now = bare.copies();
      const double share = n == 0 ? 1 : share_of(n);
      for (size_t i = 0; i < now.size(); ++i) average[i] += share * (now[i] - average[i]);
      n += 1;
    }
    // Training is not affected.
    EXPECT_TRUE(at::equal(bare.parameters[0].tensor, wrapped.parameters[0].tensor));
    wrapped.optimizer->use_averaged_weights(true);
    const std::vector<at::Tensor> got = wrapped.copies(), plain = bare.copies();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(at::allclose(got[i], n == 0 ? plain[i] : average[i], 1e-5, 1e-6)) << t;
    }
    // Counters are not averaged.
    EXPECT_TRUE(at::equal(got[3], plain[3]));
    wrapped.optimizer->use_averaged_weights(false);
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(at::equal(wrapped.copies()[i], plain[i]));
    }
  }
}

TEST(Ema, MatchesPyTorch) {
  expect_average("[{ema: {decay: 0.9, warmup: false}}]", 1, 1, [](double) { return 0.1; });
  expect_average("[{ema: {decay: 0.9, warmup: false, every: 3}}]", 3, 3,
                 [](double) { return 0.1; });
  expect_average("[{ema: {decay: 0.9, warmup: false, every: 3, start: 1 epoch}}]", 10, 3,
                 [](double) { return 0.1; });
}

TEST(Ema, WarmsUpAsInTimm) {
  expect_average("[{ema: {decay: 0.99}}]", 1, 1,
                 [](double n) { return 1 - std::min(0.99, (1 + n) / (10 + n)); });
}

TEST(Swa, MatchesPyTorch) {
  const auto share = [](double n) { return 1 / (n + 1); };
  expect_average("[{swa: {start: 0.05, every: 5 steps}}]", 5, 5, share);
  expect_average("[{swa: {start: 7 steps, every: 0.03}}]", 7, 3, share);
  expect_average("[{swa: {start: 1 epoch}}]", 10, 10, share);
  expect_average("[{swa: {start: 0, every: 1 epoch}}]", 10, 10, share);
}

TEST(Swa, RecomputesStatisticsByItsOptions) {
  EXPECT_TRUE(Training("[swa]").optimizer->averaging().recompute_statistics);
  EXPECT_FALSE(
      Training("[{swa: {batch_norm: average}}]").optimizer->averaging().recompute_statistics);
  EXPECT_FALSE(Training("[ema]").optimizer->averaging().recompute_statistics);
}

// Algorithm 1 of the paper, around SGD with momentum that goes on as it is.
TEST(Lookahead, FollowsItsPaper) {
  for (const double alpha : {0.5, 0.8, 1.0}) {
    Training wrapped("[{lookahead: {k: 3, alpha: " + std::to_string(alpha) + "}}]");
    at::Tensor slow = wrapped.parameters[0].tensor.to(at::kDouble).clone(), fast = slow.clone();
    at::Tensor momentum = at::zeros_like(slow);
    for (int64_t t = 1; t <= 20; ++t) {
      wrapped.step();
      momentum = 0.9 * momentum + wrapped.parameters[0].tensor.grad().to(at::kDouble);
      fast = fast - 0.1 * momentum;
      if (t % 3 == 0) {
        slow = slow + alpha * (fast - slow);
        fast = slow.clone();
      }
      EXPECT_TRUE(at::allclose(wrapped.copies()[0], fast, 1e-5, 1e-6)) << t;
      wrapped.optimizer->use_averaged_weights(true);
      EXPECT_TRUE(at::allclose(wrapped.copies()[0], slow, 1e-5, 1e-6)) << t;
      wrapped.optimizer->use_averaged_weights(false);
    }
  }
}

// LookaheadState of airbench94.py, whose decay is 0.95^5 * progress^3.
TEST(Lookahead, WithAPowerMatchesTheSpeedRecords) {
  Training bare("[]"), wrapped("[{lookahead: {k: 5, alpha: 0.226219, power: 3}}]");
  at::Tensor slow = bare.copies()[0], fast = slow.clone();
  for (int64_t t = 1; t <= 110; ++t) {
    const at::Tensor before = bare.copies()[0];
    bare.step();
    wrapped.step();
    // SGD makes the same steps from any point.
    fast += bare.copies()[0] - before;
    if (t % 5 == 0) {
      const double progress = std::min(1.0, static_cast<double>(t) / 100);
      slow = slow.lerp(fast, 1 - std::pow(0.95, 5) * std::pow(progress, 3));
      fast = slow.clone();
    }
    EXPECT_TRUE(at::allclose(wrapped.copies()[0], fast, 1e-4, 1e-5)) << t;
  }
}

TEST(Lookahead, WithAlphaOneIsTheOptimizerItself) {
  Training bare("[]"), wrapped("[{lookahead: {k: 2, alpha: 1}}]");
  for (int t = 0; t < 9; ++t) {
    bare.step();
    wrapped.step();
    EXPECT_TRUE(at::equal(bare.parameters[0].tensor, wrapped.parameters[0].tensor));
  }
}

TEST(Wrappers, ForwardNormAndLearningRate) {
  for (const auto& [name, wrappers] : every_wrapping()) {
    Training training(wrappers, "adamw");
    EXPECT_EQ(training.optimizer->base_lr(), 1e-3);
    training.step();
    const at::Tensor norm = training.optimizer->step(fp32(0.1));
    ASSERT_TRUE(norm.defined());
    EXPECT_GT(norm.item<double>(), 0);
  }
}

TEST(Wrappers, NameTheirState) {
  Training training("[lookahead, ema]");
  training.step();
  const auto names = [&] {
    std::string all;
    for (const auto& [name, tensor] : training.optimizer->state()) all += name + " ";
    return all;
  };
  EXPECT_EQ(names(),
            "momentum.weight momentum.bias lookahead.counts lookahead.slow.weight "
            "lookahead.slow.bias ema.counts ema.average.weight ema.average.bias "
            "ema.average.running_mean ");
  training.optimizer->use_averaged_weights(true);
  EXPECT_EQ(names(),
            "momentum.weight momentum.bias lookahead.counts lookahead.slow.weight "
            "lookahead.slow.bias ema.counts ema.training.weight ema.training.bias "
            "ema.training.running_mean ");
}

// In-place changes while the average is in use are changes of the average.
TEST(Wrappers, KeepInPlaceChangesOfTheAverage) {
  Training training("[ema]");
  training.step();
  training.optimizer->use_averaged_weights(true);
  training.buffers[0].tensor.fill_(5);
  training.optimizer->use_averaged_weights(false);
  EXPECT_FALSE(at::equal(training.buffers[0].tensor, at::full({5}, 5)));
  training.optimizer->use_averaged_weights(true);
  EXPECT_TRUE(at::equal(training.buffers[0].tensor, at::full({5}, 5)));
}

TEST(Wrappers, RejectContradictions) {
  EXPECT_EQ(error_of("[ema, swa]"),
            "optimizer.wrappers: swa around another average: weights can be averaged only once");
  EXPECT_EQ(error_of("[ema, ema]"), "optimizer.wrappers: duplicate 'ema'");
  for (const char* optimizer : {"schedule-free-sgd", "schedule-free-adamw"}) {
    for (const char* average : {"ema", "swa"}) {
      EXPECT_EQ(error_of("[" + std::string(average) + "]", optimizer),
                "optimizer.wrappers: " + std::string(average) +
                    " around a schedule-free optimizer, which averages them itself: weights can "
                    "be averaged only once");
    }
    EXPECT_NE(error_of("[lookahead]", optimizer).find("cannot wrap a schedule-free optimizer"),
              std::string::npos);
  }
  EXPECT_NE(error_of("[ema, lookahead]").find("put lookahead first"), std::string::npos);
  EXPECT_EQ(error_of("[lookahead, ema]"), "");
}

TEST(Wrappers, RejectIntervalsBeyondTheRun) {
  EXPECT_EQ(error_of("[{swa: {start: 10 epochs}}]"),
            "optimizer.wrappers: swa starts at '10 epochs', which is step 100 of a run of 100");
  EXPECT_NE(error_of("[{ema: {start: 1000 steps}}]").find("step 1000 of a run of 100"),
            std::string::npos);
  EXPECT_EQ(error_of("[{swa: {start: 0, every: 11 epochs}}]"),
            "optimizer.wrappers: swa acts every 110 steps, but the run has 100");
  EXPECT_NE(error_of("[{swa: {every: 0 steps}}]").find("less than one step"), std::string::npos);
  EXPECT_NE(error_of("[{ema: {every: 101}}]").find("acts every 101 steps"), std::string::npos);
  EXPECT_NE(error_of("[{lookahead: {k: 101}}]").find("acts every 101 steps"), std::string::npos);
}

TEST(Wrappers, RejectInvalidOptionsByName) {
  EXPECT_NE(error_of("[{ema: {decay: 1}}]").find("wrap.0.ema.decay"), std::string::npos);
  EXPECT_NE(error_of("[{swa: {start: 1.5}}]").find("wrap.0.swa.start"), std::string::npos);
  EXPECT_NE(error_of("[{lookahead: {alpha: 0}}]").find("wrap.0.lookahead.alpha"),
            std::string::npos);
  EXPECT_NE(error_of("[{lookahead: {k: 0}}]").find("wrap.0.lookahead.k"), std::string::npos);
  EXPECT_NE(error_of("[emma]").find("unknown wrapper 'emma'; did you mean 'ema'?"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::optim

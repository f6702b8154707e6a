// Steps that run out of memory.
#include "gallop/train/out_of_memory.h"

#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "gallop/compile/passes.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/train/step/seed.h"
#include "gallop/train/step/step.h"
#include "unit/train/labeled.h"
#include "unit/train/limited_allocator.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

TEST(OutOfMemory, IsDistinguishedFromOtherErrors) {
  EXPECT_FALSE(run_in_memory([] {}).has_value());
  EXPECT_EQ(run_in_memory([] { throw std::bad_alloc(); }), "the system could not allocate memory");
  EXPECT_NE(run_in_memory([] { c10::GetCPUAllocator()->allocate(size_t{1} << 62); })
                .value()
                .find("4611686018427387904"),
            std::string::npos);
  EXPECT_EQ(run_in_memory([] { C10_THROW_ERROR(OutOfMemoryError, "CUDA out of memory.\nMore"); }),
            "CUDA out of memory.");
  // LibTorch's error if a GPU has no memory for a context or a library.
  EXPECT_EQ(run_in_memory([] { TORCH_CHECK(false, "CUDA error: out of memory\nSearch for it"); }),
            "CUDA error: out of memory");
  EXPECT_EQ(
      run_in_memory([] { TORCH_CHECK(false, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when x"); }),
      "CUBLAS_STATUS_ALLOC_FAILED when x");
  const char* const kOfCudnn = "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
  EXPECT_EQ(run_in_memory([&] { TORCH_CHECK(false, "cuDNN error: ", kOfCudnn); }), kOfCudnn);
  EXPECT_THROW(run_in_memory([] { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_THROW(run_in_memory([] { TORCH_CHECK(false, "x"); }), c10::Error);
}

// Autograd's queue would keep the activations of the failed pass until the next pass.
TEST(OutOfMemory, WithinABackwardPassFreesAllActivations) {
  LimitedAllocator& allocator = LimitedAllocator::get();
  const at::Tensor weight = at::ones({1000}).requires_grad_();
  const int64_t before = allocator.now();
  const auto full = run_in_memory([&] {
    // Two branches: the nodes of one wait while those of the other run.
    const at::Tensor loss = (weight.exp().exp() + weight.sin().sin()).sum();
    LimitedAllocator::fail_after(1);
    loss.backward();
  });
  EXPECT_TRUE(full.has_value());
  EXPECT_EQ(allocator.now(), before);
}

std::vector<at::Tensor> copies_of(const NamedTensors& tensors) {
  std::vector<at::Tensor> copies;
  for (const auto& [name, tensor] : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

void expect_equal(const NamedTensors& got, const std::vector<at::Tensor>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i].tensor, wanted[i])) << got[i].name;
  }
}

std::vector<Case> all_cases() {
  const MakeModel mlp = [] { return make_mlp({.hidden = {64, 64}, .dropout = 0.2}, kImages, 1); };
  const MakeModel resnet = [] { return make_resnet({.depth = 8}, kImages, 1); };
  const MakeModel gpt = [] {
    return make_gpt({.layers = 2, .width = 16, .heads = 2, .dropout = 0.1}, kText, 1);
  };
  return {{"Mlp", mlp, "adamw", {}},
          {"Resnet", resnet, "sgd", {}},
          {"ResnetBf16", resnet, "adamw", {.precision = Precision::kBf16}},
          {"ResnetSam", resnet, "sgd", {.sam = 0.05}},
          {"ResnetAccumulate", resnet, "sgd", {.gradient_accumulation = 3, .clip_grad_norm = 0.1}},
          {"Gpt", gpt, "adamw", {.skip_nonfinite = true}, /*text=*/true}};
}

// LibTorch's fp16 convolutions on the CPU are slow.
std::vector<Case> slow_cases() {
  const MakeModel resnet = [] { return make_resnet({.depth = 8}, kImages, 1); };
  return {{"ResnetFp16", resnet, "sgd", {.precision = Precision::kFp16}}};
}

class StepWithoutMemory : public testing::TestWithParam<Case> {};

// So many rows that activations need more memory than weights and their copies in dry runs.
int64_t rows_of(const Case& tested) {
  if (tested.name == "Mlp") return 2048;
  const bool is_bf16 = tested.config.precision == Precision::kBf16;
  return is_bf16 || tested.config.sam || tested.config.gradient_accumulation > 1 ? 256 : 64;
}

StepResult run_step(Trainee& trainee, const Case& tested, int64_t step, int64_t rows) {
  seed_step(9, step, at::kCPU);
  const auto [input, target] = batch_of(tested, rows);
  return trainee.step->run(labeled(input, target), step, 0.01, true);
}

// Batches are larger from step 2 on.
void run_steps(Trainee& trainee, const Case& tested, int64_t first, int64_t last) {
  for (int64_t step = first; step < last; ++step) {
    const int64_t rows = step < 2 ? rows_of(tested) / 4 : rows_of(tested);
    EXPECT_TRUE(run_step(trainee, tested, step, rows).finite);
  }
}

// A trainee after 5 steps, split into the fewest parts (a power of two above 1) with which steps 2
// to 4 stay within the limit.
std::unique_ptr<Trainee> with_fewest_splits(const Case& tested,
                                            const std::optional<compile::CompileConfig>& compile,
                                            int64_t limit) {
  LimitedAllocator& allocator = LimitedAllocator::get();
  for (int64_t splits = 2;; splits *= 2) {
    auto trainee = std::make_unique<Trainee>(tested, compile);
    run_steps(*trainee, tested, 0, 2);
    trainee->step->set_splits(splits);
    allocator.lift();
    run_steps(*trainee, tested, 2, 5);
    if (allocator.peak() <= limit) return trainee;
  }
}

void expect_split(const Case& tested, const std::optional<compile::CompileConfig>& compile) {
  LimitedAllocator& allocator = LimitedAllocator::get();
  Trainee free(tested, compile);
  run_steps(free, tested, 0, 2);
  allocator.lift();
  run_steps(free, tested, 2, 5);
  const int64_t limit = allocator.peak() * 8 / 10;

  allocator.lift();
  Trainee limited(tested, compile);
  run_steps(limited, tested, 0, 2);
  allocator.limit(limit);
  run_steps(limited, tested, 2, 5);
  EXPECT_GT(allocator.failures(), 0);
  EXPECT_LE(allocator.peak(), limit);
  EXPECT_GE(limited.step->splits(), 2);
  EXPECT_NE(limited.step->why_split().find("can't allocate memory"), std::string::npos);
  EXPECT_EQ(limited.step->why_split().find('\n'), std::string::npos);
  allocator.lift();
  const std::unique_ptr<Trainee> wanted = with_fewest_splits(tested, compile, limit);
  EXPECT_EQ(limited.step->splits(), wanted->step->splits());
  expect_equal(limited.everything(), copies_of(wanted->everything()));
}

TEST_P(StepWithoutMemory, IsSplitAndHasTheBitsOfOneThatWas) {
  expect_split(GetParam(), std::nullopt);
}

TEST_P(StepWithoutMemory, IsSplitCompiled) { expect_split(GetParam(), compile::CompileConfig{}); }

// Sums over many micro-batches are taken as they come.
TEST(OutOfMemory, CompiledStepsOfMorePartsTakeLess) {
  const Case tested = all_cases()[1];
  int64_t before = std::numeric_limits<int64_t>::max();
  for (const int64_t splits : {1, 4, 8}) {
    LimitedAllocator& allocator = LimitedAllocator::get();
    Trainee trainee(tested, compile::CompileConfig());
    trainee.step->set_splits(splits);
    run_step(trainee, tested, 0, 256);
    allocator.lift();
    run_step(trainee, tested, 1, 256);
    EXPECT_LT(allocator.peak(), before) << splits;
    before = allocator.peak();
  }
}

// The graph of a step exists, but its memory was freed.
TEST_P(StepWithoutMemory, IsSplitWithinAGraphThatRuns) {
  const Case& tested = GetParam();
  // Includes a step in which weights change temporarily.
  if (tested.name != "Resnet" && tested.name != "ResnetSam") GTEST_SKIP();
  LimitedAllocator& allocator = LimitedAllocator::get();
  Trainee limited(tested, compile::CompileConfig());
  run_steps(limited, tested, 0, 4);
  allocator.lift();
  run_steps(limited, tested, 4, 5);
  allocator.limit(allocator.peak() * 9 / 10);
  run_steps(limited, tested, 5, 7);
  EXPECT_GT(allocator.failures(), 0);
  allocator.lift();
  Trainee wanted(tested, compile::CompileConfig());
  run_steps(wanted, tested, 0, 5);
  wanted.step->set_splits(limited.step->splits());
  run_steps(wanted, tested, 5, 7);
  expect_equal(limited.everything(), copies_of(wanted.everything()));
}

TEST_P(StepWithoutMemory, LeavesEverythingAsItWasWhereOneSampleIsTooMuch) {
  const Case& tested = GetParam();
  LimitedAllocator& allocator = LimitedAllocator::get();
  Trainee trainee(tested, std::nullopt);
  run_step(trainee, tested, 0, 8);
  const auto before = copies_of(trainee.everything());
  seed_step(9, 1, at::kCPU);
  const auto [input, target] = batch_of(tested, 8);
  allocator.limit(1000);
  try {
    trainee.step->run(labeled(input, target), 1, 0.01, false);
    FAIL() << "it fits";
  } catch (const StepDoesNotFit& error) {
    EXPECT_EQ(error.code(), ExitCode::kDevice);
    EXPECT_NE(std::string(error.what()).find("step 2: out of memory with one sample at a time"),
              std::string::npos);
  }
  allocator.lift();
  expect_equal(trainee.everything(), before);
  for (const auto& parameter : trainee.model->parameters()) {
    EXPECT_FALSE(parameter.tensor.grad().defined());
  }
}

INSTANTIATE_TEST_SUITE_P(Usual, StepWithoutMemory, testing::ValuesIn(all_cases()),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, StepWithoutMemory, testing::ValuesIn(slow_cases()),
                         [](const auto& tested) { return tested.param.name; });

// An optimizer that runs out of memory after updating the first parameter.
class Greedy final : public optim::Optimizer {
 public:
  explicit Greedy(optim::Optimizer& inner) : inner_(inner) {}
  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const optim::ScheduledOptions& scheduled) override {
    inner_.step(lr, grad_scale, found_inf, scheduled);
    throw std::bad_alloc();
  }
  bool can_schedule(optim::ScheduledOption option) const override {
    return inner_.can_schedule(option);
  }
  NamedTensors state() const override { return inner_.state(); }
  double base_lr() const override { return inner_.base_lr(); }

 private:
  optim::Optimizer& inner_;
};

TEST(OutOfMemory, WithinAnUpdateEndsTheRun) {
  const Case tested = all_cases().front();
  Trainee trainee(tested, std::nullopt);
  Greedy greedy(*trainee.optimizer);
  TrainStep step(*trainee.model, greedy, {});
  const auto [input, target] = batch_of(tested, 4);
  try {
    step.run(labeled(input, target), 0, 0.01, false);
    FAIL() << "it fits";
  } catch (const StepDoesNotFit&) {
    FAIL() << "as if nothing had changed";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("within the update"), std::string::npos);
  }
  EXPECT_EQ(step.splits(), 1);
}

}  // namespace
}  // namespace gallop::train

#include "gallop/compile/codegen/cuda_launcher.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/compile/executor.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"
#include "gallop/kernel/cuda/cross_entropy.h"
#include "gallop/kernel/cuda/cross_entropy_slots.h"
#include "gallop/kernel/cuda/dropout.h"
#include "gallop/kernel/cuda/linear_cross_entropy.h"
#include "gallop/kernel/cuda/update.h"
#include "gallop/kernel/dropout.h"
#include "gallop/kernel/update_table.h"
#include "unit/compile/cache_folder.h"
#include "unit/compile/emulated_launcher.h"
#include "unit/compile/fake_driver.h"
#include "unit/compile/update_parameters.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(CudaDropout, DropsTheSameElementsAsTheCpu) {
  EmulatedLauncher launcher;
  for (const int64_t count : {1, 15, 16, 17, 127, 128, 129, 1000, 70000}) {
    const at::Tensor state = at::tensor({int64_t{0x0123456789abcdef}, (count << 40) + 7});
    const kernel::DropoutKey key{.seed_and_step = state, .call = 3};
    for (const double p : {0.0, 0.1, 0.5, 0.99}) {
      launcher.reversed = count % 2 == 0;
      const at::Tensor x = at::randn({count});
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const at::Tensor narrow = x.to(type);
        EXPECT_TRUE(at::equal(kernel::dropout_on_gpu(launcher, narrow, p, key),
                              kernel::dropout(narrow, p, key)))
            << count << " numbers, p " << p;
        const kernel::DropoutKey varied{
            .seed_and_step = state, .call = 3, .share = at::full({}, p, at::kFloat)};
        EXPECT_TRUE(at::equal(kernel::dropout_on_gpu(launcher, narrow, 0.25, varied),
                              kernel::dropout(narrow, p, key)));
      }
      const at::Tensor half = x.to(at::kHalf);
      const at::Tensor wide =
          kernel::dropout(half.to(at::kFloat), p, {.seed_and_step = state, .call = 3});
      EXPECT_TRUE(at::equal(kernel::dropout_on_gpu(launcher, half, p, key), wide.to(at::kHalf)));
    }
  }
}

void expect_same_norm(const at::Tensor& found, const at::Tensor& wanted) {
  EXPECT_EQ(found.scalar_type(), at::kDouble);
  EXPECT_EQ(found.dim(), 0);
  EXPECT_NEAR(found.item<double>() / wanted.item<double>(), 1, 1e-7);
}

// One launcher for all tests, which compiles the source once.
class CudaUpdate : public testing::TestWithParam<kernel::UpdateRule> {
 protected:
  static void SetUpTestSuite() { shared_ = std::make_unique<EmulatedLauncher>(); }
  static void TearDownTestSuite() { shared_.reset(); }
  EmulatedLauncher& launcher_ = *shared_;

 private:
  static inline std::unique_ptr<EmulatedLauncher> shared_;
};

TEST_P(CudaUpdate, MatchesTheCpu) {
  const bool has_ratio = GetParam().ratio != nullptr;
  for (const size_t count : {1, 7, 130}) {
    Parameters on_gpu(GetParam(), count), on_cpu = on_gpu.clone();
    for (int step = 0; step < 2; ++step) {
      launcher_.launches = 0;
      launcher_.reversed = step == 1;
      if (count == 7) {
        for (Parameters* both : {&on_gpu, &on_cpu})
          both->step.grad_scale = both->step.found_inf = at::Tensor();
      }
      const at::Tensor norm = kernel::update_on_gpu(launcher_, on_gpu.step);
      expect_same_norm(norm, kernel::update(on_cpu.step));
      on_gpu.expect_near(on_cpu);
      const int64_t starts = (static_cast<int64_t>(count) + 43) / 44;
      EXPECT_LE(launcher_.launches, starts * (has_ratio ? 4 : 2));
    }
  }
}

// Compares codes on both sides: where rounding decides, one may be the next.
void expect_codes_near(const Tensors& found, const Tensors& wanted) {
  for (size_t i = 0; i < found.size(); ++i) {
    const at::Tensor apart = (found[i].to(at::kInt) - wanted[i].to(at::kInt)).abs();
    EXPECT_LE(apart.max().item<int>(), 1) << i;
    EXPECT_LE(apart.sum().item<int64_t>(), 1 + found[i].numel() / 500) << i;
  }
}

TEST_P(CudaUpdate, StoresStatesIn8BitsLikeTheCpu) {
  if (GetParam().signs_of_8_bits < 0) GTEST_SKIP() << "this rule keeps them in fp32";
  const auto states = static_cast<int64_t>(GetParam().states);
  for (const size_t count : {1, 9, 100}) {
    Parameters on_gpu(GetParam(), count);
    for (size_t i = 0; i < count; ++i) {
      on_gpu.step.scales.emplace_back();
      if (i % 2 == 1) continue;
      const int64_t size = on_gpu.step.parameters[i].numel(), blocks = (size + 255) / 256;
      on_gpu.step.scales.back() = at::rand({states, blocks}) + 0.1;
      for (size_t k = 0; k < static_cast<size_t>(states); ++k) {
        on_gpu.step.states[k * count + i] = at::randint(256, {size}, at::kByte);
      }
    }
    Parameters on_cpu = on_gpu.clone();
    for (at::Tensor& scales : on_cpu.step.scales) {
      if (scales.defined()) scales = scales.clone();
    }
    launcher_.reversed = count == 9;
    expect_same_norm(kernel::update_on_gpu(launcher_, on_gpu.step), kernel::update(on_cpu.step));
    for (size_t i = 0; i < count; ++i) {
      const double error =
          (on_gpu.step.parameters[i] - on_cpu.step.parameters[i]).abs().max().item<double>();
      // A second moment near 0 lets a rounding grow.
      EXPECT_LE(error, 2e-5) << i;
      if (!on_gpu.step.scales[i].defined()) continue;
      const at::Tensor found = on_gpu.step.scales[i], wanted = on_cpu.step.scales[i];
      EXPECT_LE((found / wanted - 1).abs().max().item<double>(), 1e-6);
      for (size_t k = 0; k < static_cast<size_t>(states); ++k) {
        expect_codes_near({on_gpu.step.states[k * count + i]}, {on_cpu.step.states[k * count + i]});
      }
    }
  }
}

// If the fp32 results differ, so may the rounding: rarely, and by one ulp.
void expect_mostly_equal(const at::Tensor& found, const at::Tensor& wanted, const char* what) {
  const at::Tensor apart =
      (found.view(at::kShort).to(at::kInt) - wanted.view(at::kShort).to(at::kInt)).abs();
  EXPECT_LE(apart.max().item<int>(), 1) << what;
  EXPECT_LE(apart.sum().item<int64_t>(), 1 + found.numel() / 500) << what;
}

// Parameters of which every other is bf16, rounded in one of these ways.
constexpr std::array kRoundings = {"nearest", "stochastic", "kahan"};
Parameters bf16_parameters(const kernel::UpdateRule& rule, const std::string& rounding) {
  Parameters made(rule, 9);
  for (size_t i = 0; i < 9; i += 2) {
    at::Tensor& parameter = made.step.parameters[i];
    // Away from 0, where an ulp is small.
    parameter = (parameter.abs() + 0.5).to(at::kBFloat16);
    made.step.bf16_copies[i].reset();
    if (rounding != "kahan") continue;
    made.step.compensations.push_back((at::randn_like(parameter) * 1e-3).to(at::kBFloat16));
  }
  if (rounding == "stochastic") made.step.draws = at::full({2}, int64_t{1} << 33 | 7, at::kLong);
  return made;
}

TEST_P(CudaUpdate, RoundsBf16ParametersLikeTheCpu) {
  for (const std::string rounding : kRoundings) {
    Parameters on_gpu = bf16_parameters(GetParam(), rounding);
    Parameters on_cpu = on_gpu.clone();
    expect_same_norm(kernel::update_on_gpu(launcher_, on_gpu.step), kernel::update(on_cpu.step));
    for (size_t i = 0; i < 9; i += 2) {
      expect_mostly_equal(on_gpu.step.parameters[i], on_cpu.step.parameters[i], rounding.c_str());
    }
    for (size_t i = 0; i < on_gpu.step.compensations.size(); ++i) {
      const at::Tensor both[] = {on_gpu.step.compensations[i], on_cpu.step.compensations[i]};
      // If a number is rounded to the other side, most of it is lost to the other side.
      const at::Tensor apart = (both[0].to(at::kFloat) - both[1].to(at::kFloat)).abs();
      EXPECT_LE(apart.gt(1e-4).sum().item<int64_t>(), 1 + apart.numel() / 500);
    }
  }
}

// Whichever of them are views at odd places: the results, the norm and ratios have the same bits.
TEST_P(CudaUpdate, DoesNotDependOnAlignment) {
  using Step = kernel::OptimizerStep;
  const std::vector<std::vector<Tensors Step::*>> choices = {
      {&Step::parameters},
      {&Step::gradients},
      {&Step::states},
      {&Step::bf16_copies, &Step::compensations},
      {&Step::parameters, &Step::gradients, &Step::states}};
  for (const std::string rounding : kRoundings) {
    const Parameters before = bf16_parameters(GetParam(), rounding);
    Parameters aligned = before.clone();
    const at::Tensor norm = kernel::update_on_gpu(launcher_, aligned.step);
    for (const auto& lists : choices) {
      Parameters shifted = before.unaligned(lists);
      EXPECT_TRUE(at::equal(kernel::update_on_gpu(launcher_, shifted.step), norm));
      shifted.expect_equal(aligned);
    }
  }
}

TEST_P(CudaUpdate, SupportsScheduledOptions) {
  Parameters fixed(GetParam(), 9), varied = fixed.clone();
  kernel::OptimizerStep& step = varied.step;
  for (size_t i = 0; i < step.options.size(); ++i) {
    step.scheduled.push_back(at::full({}, step.options[i], at::kDouble));
    step.scheduled_options.push_back(static_cast<int64_t>(i));
    step.options[i] = 0.125;  // Ignored.
  }
  step.scheduled.push_back(at::full({}, 0.01, at::kDouble));
  step.scheduled_options.push_back(kernel::kWeightDecayOption);
  for (double& decay : step.weight_decays) decay = decay == 0 ? 0 : kernel::kScheduledDecay;
  kernel::update_on_gpu(launcher_, fixed.step);
  kernel::update_on_gpu(launcher_, varied.step);
  varied.expect_equal(fixed);
}

TEST_P(CudaUpdate, WhenSkippedChangesNothingButReportsTheNorm) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    Parameters on_gpu(GetParam(), 9);
    const Parameters before = on_gpu.clone();
    on_gpu.step.found_inf = at::full({}, std::numeric_limits<double>::quiet_NaN(), type);
    const at::Tensor norm = kernel::update_on_gpu(launcher_, on_gpu.step);
    expect_same_norm(norm, kernel::norm(before.step.gradients));
    on_gpu.expect_equal(before);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, CudaUpdate, testing::ValuesIn(kernel::update_rules()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(CudaNorm, MatchesTheCpuInAFixedOrder) {
  EmulatedLauncher launcher;
  const Parameters some(kernel::update_rule("sgd"), 100);
  const at::Tensor norm = kernel::norm_on_gpu(launcher, some.step.gradients);
  expect_same_norm(norm, kernel::norm(some.step.gradients));
  launcher.reversed = true;
  EXPECT_TRUE(at::equal(kernel::norm_on_gpu(launcher, some.step.gradients), norm));
  // Squares may leave the range of fp32; what is not finite is not hidden.
  expect_same_norm(kernel::norm_on_gpu(launcher, {at::full({5000}, 1e30F)}),
                   at::full({}, 1e30 * std::sqrt(5000.0), at::kDouble));
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const at::Tensor one = at::ones({4500});
    one[4400] = bad;
    EXPECT_FALSE(std::isfinite(
        kernel::norm_on_gpu(launcher, {at::ones({3}), one, at::ones({1})}).item<double>()));
  }
  EXPECT_EQ(kernel::norm_on_gpu(launcher, {at::zeros({0}), at::full({4}, 1.5F)}).item<double>(), 3);
  EXPECT_THROW(kernel::norm_on_gpu(launcher, {at::ones({3}, at::kHalf)}), InternalError);
}

// Logits of a few columns, of more than a block has threads, and of many.
struct Classified {
  at::Tensor logits, target, shares;
  Classified(int64_t rows, int64_t columns, at::ScalarType type)
      : logits((at::randn({rows, columns}) * 4).to(type)),
        target(at::randint(columns, {rows}, at::kLong)),
        shares(at::softmax(at::randn({rows, columns}), 1)) {
    target[rows / 2] = -100;
    // If there are two maxima, the first counts.
    logits[0][0] = 30;
    logits[0][columns - 1] = 30;
    target[0] = columns - 1;
  }
};

class CudaCrossEntropy : public testing::TestWithParam<at::ScalarType> {};

TEST_P(CudaCrossEntropy, MatchesLibTorchInFp64) {
  EmulatedLauncher launcher;
  const at::ScalarType type = GetParam();
  const double unit = type == at::kFloat ? 0x1p-22 : type == at::kHalf ? 0x1p-11 : 0x1p-8;
  const std::pair<int64_t, int64_t> sizes[] = {{3, 2},   {300, 10}, {7, 64},   {7, 65},
                                               {9, 257}, {2, 2100}, {2, 2101}, {2, 8300}};
  const at::AutoGradMode with_gradients(true);
  for (const auto& [rows, columns] : sizes) {
    const Classified c(rows, columns, type);
    for (const auto& [smoothing, classes] :
         {std::pair(0.0, true), {0.1, true}, {0.0, false}, {0.1, false}}) {
      const at::Tensor target = classes ? c.target : c.shares;
      const kernel::CrossEntropyOptions options{.label_smoothing = smoothing};
      launcher.reversed = classes;
      const auto found = kernel::cross_entropy_on_gpu(launcher, c.logits, target, options);
      const at::Tensor exact = c.logits.to(at::kDouble).set_requires_grad(true);
      const at::Tensor wanted =
          at::cross_entropy_loss(exact, classes ? target : target.to(at::kDouble), {},
                                 at::Reduction::Sum, -100, smoothing);
      wanted.backward(at::full({}, 0.25, at::kDouble));
      EXPECT_NEAR(found.loss.item<double>() / wanted.item<double>(), 1, 1e-6);
      const at::Tensor dx = kernel::cross_entropy_backward_on_gpu(
          launcher, at::full({}, 0.25F), c.logits, target, found.rows, options);
      EXPECT_EQ(dx.scalar_type(), type);
      EXPECT_LE((dx.to(at::kDouble) - exact.grad()).abs().max().item<double>(), 0.25 * unit);
      EXPECT_EQ(found.correct.defined(), classes);
      if (!classes) continue;
      const auto first = c.logits.to(at::kFloat).argmax(1);
      EXPECT_EQ(found.correct.item<int64_t>(), at::eq(first, target).sum().item<int64_t>());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CudaCrossEntropy, testing::Values(at::kFloat, at::kBFloat16, at::kHalf));

// Launches two blocks where cross-entropy wants more, as it does beyond 4096.
class TwoBlocks final : public kernel::CudaLauncher {
 public:
  bool can_launch(c10::Device) override { return true; }
  void launch(const kernel::CudaLaunch& launch) override {
    kernel::CudaLaunch changed = launch;
    changed.blocks = std::min<uint32_t>(launch.blocks, 2);
    uint64_t& blocks = changed.slots[kernel::CrossEntropySlot::kBlocks];
    blocks = std::min<uint64_t>(blocks, 2);
    emulated.launch(changed);
  }

  EmulatedLauncher emulated;
};

TEST(CudaCrossEntropyRows, AreAddedUpInAFixedOrder) {
  TwoBlocks launcher;
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1100, 5}, {9, 70}}) {
    const Classified c(rows, columns, at::kFloat);
    const at::Tensor wanted =
        at::cross_entropy_loss(c.logits.to(at::kDouble), c.target, {}, at::Reduction::Sum);
    at::Tensor loss;
    for (const bool reversed : {false, true}) {
      launcher.emulated.reversed = reversed;
      const auto found = kernel::cross_entropy_on_gpu(launcher, c.logits, c.target, {});
      EXPECT_NEAR(found.loss.item<double>() / wanted.item<double>(), 1, 1e-6);
      EXPECT_EQ(found.correct.item<int64_t>(),
                at::eq(c.logits.argmax(1), c.target).sum().item<int64_t>());
      if (reversed) {
        EXPECT_TRUE(at::equal(found.loss, loss));
      }
      loss = found.loss;
    }
  }
}

TEST(CudaCrossEntropyRows, DoNotDependOnAlignment) {
  EmulatedLauncher launcher;
  for (const int64_t columns : {24, 72, 1000}) {
    const Classified c(3, columns, at::kBFloat16);
    const at::Tensor shifted =
        at::zeros({3 * columns + 1}, at::kBFloat16).narrow(0, 1, 3 * columns).view({3, columns});
    shifted.copy_(c.logits);
    const auto found = kernel::cross_entropy_on_gpu(launcher, shifted, c.target, {});
    const auto wanted = kernel::cross_entropy_on_gpu(launcher, c.logits, c.target, {});
    EXPECT_TRUE(at::equal(found.loss, wanted.loss));
    EXPECT_TRUE(at::equal(found.rows, wanted.rows));
  }
}

TEST(CudaCrossEntropyRows, AnInvalidClassGivesNan) {
  EmulatedLauncher launcher;
  for (const int64_t bad : {-1, 7}) {
    const at::Tensor logits = at::randn({4, 7}), target = at::zeros({4}, at::kLong);
    target[2] = bad;
    const auto found = kernel::cross_entropy_on_gpu(launcher, logits, target, {});
    EXPECT_TRUE(std::isnan(found.loss.item<float>()));
    const at::Tensor dx = kernel::cross_entropy_backward_on_gpu(launcher, at::full({}, 1.0F),
                                                                logits, target, found.rows, {});
    EXPECT_TRUE(std::isnan(dx[2][3].item<float>()));
    EXPECT_TRUE(std::isfinite(dx[1].sum().item<float>()));
  }
}

class CudaLinearCrossEntropy : public testing::TestWithParam<at::ScalarType> {};

TEST_P(CudaLinearCrossEntropy, MatchesFp64ForAnyChunkSize) {
  EmulatedLauncher launcher;
  const at::AutoGradMode with_gradients(true);
  const at::ScalarType type = GetParam();
  const double unit = type == at::kFloat ? 0x1p-20 : type == at::kHalf ? 0x1p-9 : 0x1p-6;
  const at::Tensor x = at::randn({7, 32}).to(type), weight = (at::randn({40, 32}) / 4).to(type);
  const at::Tensor target = at::randint(40, {7}, at::kLong);
  target[5] = -100;
  const at::Tensor exact_x = x.to(at::kDouble).set_requires_grad(true);
  const at::Tensor exact_weight = weight.to(at::kDouble).set_requires_grad(true);
  const at::Tensor logits = exact_x.matmul(exact_weight.t());
  const at::Tensor wanted =
      at::cross_entropy_loss(logits, target, {}, at::Reduction::Sum, -100, 0.1);
  wanted.backward();
  for (const int64_t most_logits : {1, 3 * 40, 1 << 20}) {
    const auto found = kernel::linear_cross_entropy_on_gpu(
        launcher, x, weight, target,
        {.targets = {.label_smoothing = 0.1}, .most_logits = most_logits});
    EXPECT_NEAR(found.loss.item<double>() / wanted.item<double>(), 1, unit);
    EXPECT_EQ(found.x.scalar_type(), type);
    EXPECT_EQ(found.weight.scalar_type(), at::kFloat);
    EXPECT_LE((found.x.to(at::kDouble) - exact_x.grad()).abs().max().item<double>(), 2 * unit);
    EXPECT_LE((found.weight.to(at::kDouble) - exact_weight.grad()).abs().max().item<double>(),
              8 * unit);
    if (type != at::kFloat) continue;
    EXPECT_EQ(found.correct.item<int64_t>(),
              at::eq(logits.argmax(1), target).sum().item<int64_t>());
  }
  const auto loss_alone = kernel::linear_cross_entropy_on_gpu(
      launcher, x, weight, target, {.wants_x = false, .wants_weight = false});
  EXPECT_FALSE(loss_alone.x.defined());
  EXPECT_FALSE(loss_alone.weight.defined());
}

INSTANTIATE_TEST_SUITE_P(, CudaLinearCrossEntropy,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf));

// A step of LibTorch's operators gets the kernel on a GPU that has it, and memory there.
TEST(CudaCrossEntropyRows, ReplacesLibTorchsOperators) {
  const Function function = [](const Tensors& in) -> Tensors {
    const at::AutoGradMode with_gradients(true);
    const at::Tensor x = in[0].detach().set_requires_grad(true);
    const at::Tensor loss = at::cross_entropy_loss(x, in[1], {}, at::Reduction::Mean, -100, 0.1);
    loss.backward();
    return {loss.detach(), x.grad()};
  };
  const Tensors inputs = {at::randn({20, 30}), at::randint(30, {20}, at::kLong)};
  KernelCompiler compiler({.cuda_driver = "libcuda-missing.so"});
  PassContext context{.compiler = compiler};
  Graph graph = record(function, inputs).graph;
  for (Buffer& buffer : graph.buffers) buffer.device = {c10::kCUDA, 0};
  kernel::set_cuda_launcher(std::make_shared<EmulatedLauncher>());
  run_passes(graph, {"fuse", "rematerialize", "schedule"}, context);
  kernel::set_cuda_launcher(nullptr);
  const auto calls = [&](const char* op) {
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [&](const Node& node) { return name_of(node.op) == op; });
  };
  EXPECT_EQ(calls("gallop::cross_entropy"), 1);
  EXPECT_EQ(calls("gallop::cross_entropy_backward"), 1);
  for (Buffer& buffer : graph.buffers) {
    EXPECT_TRUE(buffer.device.is_cuda());
    buffer.device = c10::kCPU;
  }
  const Tensors found = Executor(graph).run(inputs), wanted = function(inputs);
  EXPECT_NEAR(found[0].item<float>(), wanted[0].item<float>(), 1e-5);
  EXPECT_LE((found[1] - wanted[1]).abs().max().item<float>(), 1e-7);
}

using CudaTexts = FakeDriverTest;

// A kernel's text and the compute capability of a GPU.
class CudaTextsOf : public FakeDriverTest,
                    public testing::WithParamInterface<std::tuple<const char*, int>> {};

TEST_P(CudaTextsOf, Compile) {
  const auto [path, capability] = GetParam();
  const CudaBinary binary = compiler_.submit({cuda_text(path)}, capability)[0].get();
  EXPECT_EQ(binary.fallback_reason, "");
  EXPECT_EQ(binary.image.substr(1, 3), "ELF");
}

INSTANTIATE_TEST_SUITE_P(Gpu, CudaTextsOf,
                         testing::Combine(testing::Values(kernel::kCrossEntropyText,
                                                          kernel::kDropoutText),
                                          testing::Values(90)));
INSTANTIATE_TEST_SUITE_P(Long, CudaTextsOf,
                         testing::Combine(testing::Values(kernel::kCrossEntropyText,
                                                          kernel::kDropoutText,
                                                          kernel::kUpdateText),
                                          testing::Values(80, 90)));

TEST_F(CudaTexts, LaunchOnTheStream) {
  CudaTextKernels kernels(compiler_, 0, kFakeDriver);
  ASSERT_EQ(kernels.fallback_reason(), "");
  std::vector<uint64_t> slots(kernel::kCudaSlots);
  slots[0] = 77;
  kernel::CudaLaunch launch{.text = kernel::kUpdateText,
                            .part = "sgd",
                            .kernel = "gallop_update_sgd",
                            .blocks = 5,
                            .device = {c10::kCUDA, 0},
                            .slots = slots};
  kernels.launch(launch, reinterpret_cast<void*>(0x88));
  EXPECT_EQ(take_calls(), "gallop_update_sgd grid 5 1 block 256 1 stream 0x88 first 77\n");
  // A thread without a context, such as autograd's.
  std::thread([&] { kernels.launch(launch, nullptr); }).join();
  EXPECT_EQ(take_calls(), "gallop_update_sgd grid 5 1 block 256 1 stream 0 first 77\n");
  launch.kernel = "gallop_nothing";
  EXPECT_THROW(kernels.launch(launch, nullptr), InternalError);
  launch.kernel = "gallop_update_sgd";
  launch.slots.resize(3);
  EXPECT_THROW(kernels.launch(launch, nullptr), InternalError);
  launch.slots = slots;
  fail("cuLaunchKernel");
  EXPECT_THROW(kernels.launch(launch, nullptr), DeviceError);

  fail("cuModuleLoadData");
  EXPECT_NE(CudaTextKernels(compiler_, 0, kFakeDriver).fallback_reason().find("cannot load"),
            std::string::npos);
}

TEST_F(CudaTexts, ReportMissingFunctions) {
  const std::string without = CudaTextKernels(compiler_, 0, "libcuda-missing.so").fallback_reason();
  EXPECT_NE(without.find("cannot be loaded"), std::string::npos) << without;
  CudaCompiler none({.libraries = {"libnvrtc-missing.so"}, .cache_folder = folder_.path()});
  EXPECT_NE(CudaTextKernels(none, 0, kFakeDriver).fallback_reason().find("there is no NVRTC"),
            std::string::npos);
  EXPECT_THROW(cuda_text("gallop/kernel/cuda/nothing.h"), InternalError);
}

// No launcher, no GPU: LibTorch's operators.
TEST(CudaLauncher, IsOnlyRegisteredForSupportedGpus) {
  EXPECT_EQ(kernel::cuda_launcher_for({c10::kCUDA, 0}), nullptr);
  kernel::set_cuda_launcher(std::make_shared<EmulatedLauncher>());
  EXPECT_NE(kernel::cuda_launcher_for({c10::kCUDA, 0}), nullptr);
  EXPECT_EQ(kernel::cuda_launcher_for(c10::kCPU), nullptr);
  kernel::set_cuda_launcher(nullptr);
}

}  // namespace
}  // namespace gallop::compile

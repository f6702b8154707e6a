// CUDA C++ on a real GPU: compares generated loops with a reference of their programs, and the
// kernels of kernel/cuda with those of the CPU.
#include <limits>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "gallop/compile/codegen/cuda_kernel.h"
#include "gallop/compile/codegen/op_traits.h"
#include "gallop/kernel/cross_entropy.h"
#include "gallop/kernel/dropout.h"
#include "gpu/on_gpu.h"
#include "unit/compile/cache_folder.h"
#include "unit/compile/loop_cases.h"
#include "unit/compile/random_programs.h"
#include "unit/compile/update_parameters.h"

namespace gallop::compile {
namespace {

class Gpu : public OnGpu<testing::Test> {
 protected:
  at::Tensor there(const at::Tensor& tensor) const { return tensor.to(device_); }
};

int64_t bytes_of(const LoopOperand& operand, const LoopProgram& program) {
  return reach_of(operand, program.sizes) * bytes_of(operand.format);
}

/// Copies on a GPU of what a loop reads and writes on the host, at its address or, where not
/// `aligned`, one number behind.
class MemoryThere {
 public:
  MemoryThere(c10::Device device, bool aligned) : device_(device), aligned_(aligned) {}

  void* of(const void* host, int64_t bytes, Format format) {
    auto& place = places_[host];
    if (!place.tensor.defined()) {
      place.offset = aligned_ ? 0 : bytes_of(format);
      place.tensor =
          at::empty({bytes + place.offset}, at::TensorOptions(at::kByte).device(device_));
      place.tensor.narrow(0, place.offset, bytes).copy_(on_host(host, bytes));
    }
    return static_cast<std::byte*>(place.tensor.data_ptr()) + place.offset;
  }

  void bring_back(void* host, int64_t bytes) {
    const Place& place = places_.at(host);
    on_host(host, bytes).copy_(place.tensor.narrow(0, place.offset, bytes));
  }

 private:
  struct Place {
    at::Tensor tensor;
    int64_t offset = 0;
  };
  static at::Tensor on_host(const void* host, int64_t bytes) {
    return at::from_blob(const_cast<void*>(host), {bytes}, at::kByte);
  }

  c10::Device device_;
  bool aligned_;
  std::map<const void*, Place> places_;
};

std::vector<Memory> run_on(c10::Device device, const CudaKernel& kernel, const LoopCase& c,
                           bool aligned) {
  const LoopProgram& program = c.program;
  return run(c, [&](const auto& inputs, const auto& outputs) {
    MemoryThere memory(device, aligned);
    std::vector<const void*> read;
    std::vector<void*> written;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const LoopOperand& operand = program.inputs[i];
      read.push_back(memory.of(inputs[i], bytes_of(operand, program), operand.format));
    }
    for (size_t o = 0; o < outputs.size(); ++o) {
      const LoopOperand& operand = program.outputs[o].operand;
      written.push_back(memory.of(outputs[o], bytes_of(operand, program), operand.format));
    }
    const at::Tensor totals = at::empty({std::max<int64_t>(total_bytes(kernel.plan()), 1)},
                                        at::TensorOptions(at::kByte).device(device));
    const auto stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
    kernel.launch(read, written, totals.data_ptr(), stream.native_handle());
    for (size_t o = 0; o < outputs.size(); ++o) {
      memory.bring_back(outputs[o], bytes_of(program.outputs[o].operand, program));
    }
  });
}

TEST_F(Gpu, LoopsComputeWhatTheProgramSays) {
  RandomPrograms random(50, /*for_gpus=*/true);
  constexpr int64_t kForms = 80;
  const CacheFolder folder;
  CudaCompiler compiler({.libraries = {}, .cache_folder = folder.path(), .threads = 8});
  const std::vector<LoopCase> cases = make_cases_for_gpus(random, kForms);
  std::vector<std::unique_ptr<CudaKernel>> kernels;
  for (const LoopCase& c : cases) {
    kernels.push_back(CudaKernel::make(c.program, compiler, device_.index(), "libcuda.so.1"));
  }
  int64_t exact = 0;
  for (size_t i = 0; i < cases.size() && !HasFailure(); ++i) {
    ASSERT_TRUE(kernels[i]->load()) << kernels[i]->fallback_reason() << describe(cases[i].program);
    const auto wanted = interpret(cases[i].program, cases[i].inputs, /*flushes=*/false);
    for (const bool aligned : {true, false}) {
      exact += compare(cases[i], run_on(device_, *kernels[i], cases[i], aligned), wanted);
    }
  }
  EXPECT_GT(exact, 200'000) << "numbers that have to be equal";
}

TEST_F(Gpu, DropsTheNumbersOfTheCpu) {
  for (const int64_t count : {1, 15, 128, 1000, 70000}) {
    const at::Tensor state = at::tensor({int64_t{0x0123456789abcdef}, (count << 40) + 7});
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::randn({count}).to(type);
      const at::Tensor found =
          kernel::dropout(there(x), 0.3, {.seed_and_step = there(state), .call = 3});
      EXPECT_TRUE(
          at::equal(found.cpu(), kernel::dropout(x, 0.3, {.seed_and_step = state, .call = 3})));
    }
  }
}

TEST_F(Gpu, CrossEntropyIsLibTorchsOfFp64) {
  const at::AutoGradMode with_gradients(true);
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const double unit = type == at::kFloat ? 0x1p-22 : type == at::kHalf ? 0x1p-11 : 0x1p-8;
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{3, 2},
                                        {40, 10},
                                        {1'050'000, 5},
                                        {9, 257},
                                        {5000, 65},
                                        {50, 50000},
                                        {50, 50257}}) {
      const at::Tensor logits = (at::randn({rows, columns}) * 4).to(type);
      const at::Tensor target = at::randint(columns, {rows}, at::kLong);
      target[rows / 2] = -100;
      const kernel::CrossEntropyOptions options{.label_smoothing = 0.1};
      const auto found = kernel::cross_entropy(there(logits), there(target), options);
      const at::Tensor exact = logits.to(at::kDouble).set_requires_grad(true);
      const at::Tensor wanted =
          at::cross_entropy_loss(exact, target, {}, at::Reduction::Sum, -100, 0.1);
      wanted.backward(at::full({}, 0.25, at::kDouble));
      EXPECT_NEAR(found.loss.item<double>() / wanted.item<double>(), 1, 2e-6);
      const at::Tensor dx = kernel::cross_entropy_backward(
          there(at::full({}, 0.25F)), there(logits), there(target), found.rows, options);
      EXPECT_LE((dx.cpu().to(at::kDouble) - exact.grad()).abs().max().item<double>(), 0.25 * unit);
    }
  }
}

TEST_F(Gpu, UpdatesAreThoseOfTheCpu) {
  for (const kernel::UpdateRule& rule : kernel::update_rules()) {
    SCOPED_TRACE(rule.name);
    for (const size_t count : {1, 7, 130}) {
      Parameters on_cpu(rule, count), on_gpu = on_cpu.on(device_);
      for (int step = 0; step < 2; ++step) {
        const at::Tensor norm = kernel::update(on_gpu.step);
        EXPECT_NEAR(norm.item<double>() / kernel::update(on_cpu.step).item<double>(), 1, 1e-7);
        on_gpu.on(c10::kCPU).expect_near(on_cpu);
      }
    }
  }
}

TEST_F(Gpu, UpdatesDoNotDependOnAlignment) {
  using Step = kernel::OptimizerStep;
  for (const kernel::UpdateRule& rule : kernel::update_rules()) {
    SCOPED_TRACE(rule.name);
    Parameters aligned = Parameters(rule, 7).on(device_);
    Parameters shifted =
        aligned.unaligned({&Step::parameters, &Step::gradients, &Step::states, &Step::bf16_copies});
    EXPECT_TRUE(at::equal(kernel::update(shifted.step), kernel::update(aligned.step)));
    shifted.expect_equal(aligned);
  }
}

TEST_F(Gpu, AStepThatIsSkippedChangesNothing) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    Parameters on_gpu = Parameters(kernel::update_rule("adamw"), 9).on(device_);
    const Parameters before = on_gpu.clone();
    on_gpu.step.found_inf = there(at::full({}, std::numeric_limits<double>::quiet_NaN(), type));
    kernel::update(on_gpu.step);
    on_gpu.expect_equal(before);
  }
}

}  // namespace
}  // namespace gallop::compile

#include "gallop/compile/codegen/cuda_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/compile/codegen/cuda_source.h"
#include "gallop/compile/codegen/loop_builder.h"
#include "unit/compile/fake_driver.h"

namespace gallop::compile {
namespace {

// y = relu(x), and its sums over columns.
LoopProgram relu_with_sums(int64_t rows, int64_t columns) {
  LoopBuilder b({rows, columns}, 1);
  const Value x = b.input(Format::kFp32, {columns, 1});
  const Value y = b.apply(Op::kRelu, x);
  b.output(y, Format::kFp32, {columns, 1});
  b.output(b.apply(Op::kColumnSum, y), Format::kFp32, {0, 1});
  return std::move(b).finish();
}

class CudaKernelTest : public FakeDriverTest {
 protected:
  std::unique_ptr<CudaKernel> make(const LoopProgram& program) {
    return CudaKernel::make(program, compiler_, 0, kFakeDriver);
  }
};

TEST_F(CudaKernelTest, LaunchesItsKernelsOnTheStreamInOrder) {
  const auto kernel = make(relu_with_sums(1000, 512));
  ASSERT_TRUE(kernel->load()) << kernel->fallback_reason();
  const CudaPlan& plan = kernel->plan();
  const std::string symbol = cuda_source(plan).symbol;
  EXPECT_EQ(total_bytes(plan), plan.blocks * 512 * 8);
  const auto address = [](uintptr_t at) { return reinterpret_cast<void*>(at); };
  const auto line = [&](const char* suffix, auto grid, auto block, uintptr_t first) {
    return fmt::format("{}{} grid {} {} block {} {} stream 0x77 first {}\n", symbol, suffix,
                       grid[0], grid[1], block[0], block[1], first);
  };
  const std::array<uint32_t, 2> last_grid = {plan.last_grid, 1};
  kernel->launch({address(64)}, {address(128), address(256)}, address(512), address(0x77));
  EXPECT_EQ(take_calls(), line("_aligned", plan.grid, plan.block, 64) +
                              line("_columns", last_grid, plan.last_block, 64));
  kernel->launch({address(68)}, {address(128), address(256)}, address(512), address(0x77));
  EXPECT_EQ(take_calls(),
            line("", plan.grid, plan.block, 68) + line("_columns", last_grid, plan.last_block, 68));
}

TEST_F(CudaKernelTest, UnloadsItsModule) {
  make(relu_with_sums(10, 10))->load();
  EXPECT_EQ(take_calls(), "unload\n");
}

TEST_F(CudaKernelTest, ReportsDriverErrors) {
  fail("cuModuleLoadData");
  auto kernel = make(relu_with_sums(10, 10));
  EXPECT_FALSE(kernel->load());
  EXPECT_EQ(
      kernel->fallback_reason(),
      "the step falls back to unfused operators: the GPU's driver cannot load a kernel: it was "
      "configured to fail (1)");
  EXPECT_THROW(kernel->launch({nullptr}, {nullptr, nullptr}, nullptr, nullptr), InternalError);
  fail("cuInit");
  kernel = make(relu_with_sums(10, 10));
  EXPECT_FALSE(kernel->load());
  EXPECT_NE(kernel->fallback_reason().find("the GPU's driver cannot start"), std::string::npos);
  fail("cuLaunchKernel");
  kernel = make(relu_with_sums(10, 10));
  ASSERT_TRUE(kernel->load());
  EXPECT_THROW(kernel->launch({nullptr}, {nullptr, nullptr}, nullptr, nullptr), DeviceError);
}

TEST_F(CudaKernelTest, ReportsAMissingDriver) {
  const auto kernel = CudaKernel::make(relu_with_sums(10, 10), compiler_, 0, "libcuda-missing.so");
  EXPECT_TRUE(kernel->is_done());
  EXPECT_FALSE(kernel->load());
  EXPECT_NE(kernel->fallback_reason().find("the GPU's driver cannot be loaded: libcuda-missing.so"),
            std::string::npos)
      << kernel->fallback_reason();
}

TEST_F(CudaKernelTest, ReportsAMissingGpu) {
  const auto kernel = CudaKernel::make(relu_with_sums(10, 10), compiler_, 3, kFakeDriver);
  EXPECT_FALSE(kernel->load());
  EXPECT_NE(kernel->fallback_reason().find("cannot query the compute capability"),
            std::string::npos)
      << kernel->fallback_reason();
}

}  // namespace
}  // namespace gallop::compile

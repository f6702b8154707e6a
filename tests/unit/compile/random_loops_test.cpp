#include <cstdlib>

#include <gtest/gtest.h>

#include "gallop/compile/codegen/cpu_source.h"
#include "gallop/compile/codegen/loop_kernel.h"
#include "unit/compile/loop_cases.h"
#include "unit/compile/random_programs.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::compile {
namespace {

std::vector<Memory> run(const LoopKernel& kernel, const LoopCase& c) {
  return run(c, [&](const auto& inputs, const auto& outputs) { kernel.run(inputs, outputs); });
}

class RandomLoops : public testing::TestWithParam<kernel::Isa> {};

TEST_P(RandomLoops, ComputeTheProgram) {
  if (!kernel::has(GetParam())) GTEST_SKIP() << "this machine does not have these instructions";
  const char* seed = std::getenv("GALLOP_TEST_SEED");
  RandomPrograms random(seed == nullptr ? 20 : static_cast<uint64_t>(std::atoll(seed)));
  const char* count = std::getenv("GALLOP_TEST_COUNT");
  const int64_t most = count == nullptr ? 42 : std::atoll(count);
  const int64_t forms = GetParam() == kernel::best_isa() ? most : most / 6;
  constexpr int64_t kSizes = 8;
  KernelCompiler compiler({.isa = GetParam()});
  std::vector<LoopCase> cases;
  std::vector<LoopProgram> programs;
  for (int64_t form = 0; form < forms; ++form) {
    cases.push_back(make_case(random, random.make()));
    for (int64_t size = 1; size < kSizes; ++size) {
      LoopProgram other = random.resized(cases[static_cast<size_t>(form * kSizes)].program);
      cases.push_back(make_case(random, std::move(other)));
    }
  }
  for (const LoopCase& c : cases) programs.push_back(c.program);
  const auto kernels = LoopKernel::make(programs, compiler);
  int64_t exact = 0, kept = 0;
  for (size_t i = 0; i < cases.size() && !HasFailure(); ++i) {
    ASSERT_TRUE(kernels[i]->wait()) << kernels[i]->fallback_reason() << describe(programs[i]);
    const auto wanted =
        interpret(programs[i], cases[i].inputs, GetParam() >= kernel::Isa::kAvx512Bf16);
    exact += compare(cases[i], run(*kernels[i], cases[i]), wanted);
  }
  for (const LoopProgram& program : programs) kept += !plan(program).kept.empty();
  EXPECT_GT(exact, 100'000) << "numbers that have to be equal";
  if (GetParam() == kernel::best_isa()) {
    EXPECT_GT(kept, kSizes) << "programs that leave values to later sweeps";
  }
}

INSTANTIATE_TEST_SUITE_P(Compile, RandomLoops, kernel::every_isa());

}  // namespace
}  // namespace gallop::compile

#include "gallop/compile/codegen/cuda_source.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "gallop/compile/codegen/loop_builder.h"
#include "unit/compile/cuda_emulation.h"
#include "unit/compile/loop_cases.h"

namespace gallop::compile {
namespace {

// Except for the bits of NaN, which a CPU compiler does not define.
bool are_same(const LoopCase& c, const std::vector<Memory>& a, const std::vector<Memory>& b) {
  for (size_t o = 0; o < a.size(); ++o) {
    const LoopOperand& operand = c.program.outputs[o].operand;
    for (int64_t i = 0; i < reach_of(operand, c.program.sizes); ++i) {
      const double x = read_number(a[o], operand.format, i);
      const double y = read_number(b[o], operand.format, i);
      const bool same =
          std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
      if (!same) return false;
    }
  }
  return true;
}

TEST(CudaSource, ComputesTheProgram) {
  const char* seed = std::getenv("GALLOP_TEST_SEED");
  RandomPrograms random(seed == nullptr ? 30 : static_cast<uint64_t>(std::atoll(seed)),
                        /*for_gpus=*/true);
  constexpr int64_t kForms = 20;
  KernelCompiler compiler({.timeout_seconds = 3600});
  const std::vector<LoopCase> cases = make_cases_for_gpus(random, kForms);
  std::vector<CudaPlan> plans;
  std::vector<KernelSource> sources;
  for (const LoopCase& c : cases) {
    plans.push_back(cuda_plan(c.program, /*busy_threads=*/1));
    // Code that only loops over gigabytes or over very long rows use.
    plans.back().long_index = random.chance(20);
    if (plans.back().form == CudaPlan::Form::kBoth && random.chance(30)) {
      plans.back().shared_columns = 0;
      plans.back().block[1] = 1;
    }
    sources.push_back(emulated_source(plans.back()));
  }
  const auto kernels = compiler.submit(emulated_prefix(), sources);
  int64_t exact = 0, totals = 0;
  std::map<CudaPlan::Form, int64_t> forms;
  std::map<int, int64_t> widths, turns, column_turns;
  std::set<std::pair<bool, bool>> shared;  // Whether there is one row, and an odd number to share.
  for (size_t i = 0; i < cases.size() && !HasFailure(); ++i) {
    const CompiledKernel& kernel = kernels[i].get();
    ASSERT_NE(kernel.function, nullptr) << kernel.fallback_reason << "\n" << sources[i].text;
    const EmulatedLoop runner(plans[i], kernel);
    ++forms[plans[i].form];
    ++widths[plans[i].width];
    if (plans[i].form == CudaPlan::Form::kPointwise) {
      const bool one_row = plans[i].loop.rows == 1;
      ++turns[plans[i].turns];
      if (plans[i].turns > 1) {
        shared.emplace(one_row, (one_row ? plans[i].groups : plans[i].loop.rows) % 2 != 0);
      }
    }
    if (plans[i].form == CudaPlan::Form::kColumns) ++column_turns[plans[i].turns];
    totals += plans[i].loop.totals.empty() ? 0 : 1;
    const auto run_as = [&](bool aligned, bool reversed) {
      return run(cases[i], [&](const auto& inputs, const auto& outputs) {
        runner(inputs, outputs, aligned, reversed);
      });
    };
    const auto found = run_as(true, false);
    exact += compare(cases[i], found, interpret(cases[i].program, cases[i].inputs, false));
    // Neither addresses nor the order of threads between barriers change a bit.
    EXPECT_TRUE(are_same(cases[i], found, run_as(false, true)))
        << describe(cases[i].program) << sources[i].text;
  }
  EXPECT_GT(exact, 100'000) << "numbers that have to be equal";
  EXPECT_EQ(forms.size(), 4U);
  EXPECT_GT(totals, 5);
  EXPECT_EQ(widths.size(), 4U);
  EXPECT_GT(turns[1], 2);
  EXPECT_GT(turns[2], 10);
  EXPECT_EQ(shared.size(), 4U);
  EXPECT_EQ(column_turns.size(), 3U) << "1, 2 and 4";
}

TEST(CudaSource, TurnsDoNotChangeTheBitsOfColumnSums) {
  constexpr int64_t kRows = 4813, kColumns = 24;
  LoopBuilder builder({kRows, kColumns}, 1);
  const Value x = builder.input(Format::kBf16, {kColumns, 1});
  const Value mean = builder.input(Format::kFp32, {0, 1});
  const Value off = builder.apply(Op::kSubtract, x, mean);
  builder.output(builder.apply(Op::kColumnSum, x), Format::kFp32, {0, 1});
  builder.output(builder.apply(Op::kColumnSum, builder.apply(Op::kMultiply, off, off)),
                 Format::kFp32, {0, 1});
  RandomPrograms random(31, /*for_gpus=*/true);
  const LoopCase c = make_case(random, std::move(builder).finish());
  std::vector<CudaPlan> plans;
  std::vector<KernelSource> sources;
  for (const int turns : {1, 2, 4}) {
    CudaPlan& plan = plans.emplace_back(cuda_plan(c.program, /*busy_threads=*/1));
    EXPECT_EQ(plan.turns, 4);
    plan.turns = turns;
    // More than 32 rows for each thread, so that sums have several parts.
    plan.block_rows = kRows;
    plan.blocks = plan.grid[1] = 1;
    EXPECT_GT(kRows / plan.block[1], 64);
    sources.push_back(emulated_source(plan));
  }
  KernelCompiler compiler({.timeout_seconds = 3600});
  const auto kernels = compiler.submit(emulated_prefix(), sources);
  std::vector<Memory> first;
  for (size_t i = 0; i < plans.size(); ++i) {
    const CompiledKernel& kernel = kernels[i].get();
    ASSERT_NE(kernel.function, nullptr) << kernel.fallback_reason << "\n" << sources[i].text;
    const EmulatedLoop runner(plans[i], kernel);
    const auto found = run(c, [&](const auto& inputs, const auto& outputs) {
      runner(inputs, outputs, /*aligned=*/true, /*reversed=*/false);
    });
    if (i == 0) first = found;
    EXPECT_TRUE(are_same(c, first, found)) << plans[i].turns << " turns";
  }
}

int turns_of(std::vector<int64_t> sizes, std::vector<int64_t> strides, bool has_total = false) {
  LoopBuilder builder(sizes);
  const Value x = builder.input(Format::kBf16, std::move(strides));
  const std::vector<int64_t> plain = {sizes[1], 1};
  builder.output(builder.apply(Op::kRelu, x), Format::kBf16, plain);
  if (has_total) builder.output(builder.apply(Op::kTotalSum, x), Format::kFp32, {0, 0});
  return cuda_plan(std::move(builder).finish()).turns;
}

TEST(CudaPlan, ThreadsTakeTwoTurnsIfEnoughThreadsAreLeft) {
  EXPECT_EQ(turns_of({1 << 12, 1 << 9}, {1 << 9, 1}), 1);
  EXPECT_EQ(turns_of({1 << 12, 1 << 11}, {1 << 11, 1}), 2);
  EXPECT_EQ(turns_of({1 << 12, 1 << 11}, {1, 1 << 12}), 1) << "read one by one";
  EXPECT_EQ(turns_of({1 << 12, 1 << 11}, {1 << 11, 1}, /*has_total=*/true), 1);
}

TEST(CudaSource, RoundsBf16OnlyOnce) {
  LoopBuilder builder({1 << 20});
  const Value x = builder.input(Format::kFp32, {1});
  const Value relu = builder.apply(Op::kRelu, builder.cast(x, Format::kBf16));
  builder.output(builder.cast(relu, Format::kBf16), Format::kBf16, {1});
  builder.output(x, Format::kBf16, {1});
  const std::string text = cuda_source(cuda_plan(std::move(builder).finish())).text;
  EXPECT_EQ(text.find("cast_bf16"), text.rfind("cast_bf16")) << text;
  EXPECT_NE(text.find("write_exact(x_out0"), std::string::npos) << text;
  EXPECT_NE(text.find("write(x_out1"), std::string::npos) << text;
}

}  // namespace
}  // namespace gallop::compile

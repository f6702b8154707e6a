#include "gallop/compile/codegen/cuda_source.h"

#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/file.h"
#include "unit/compile/cache_folder.h"
#include "unit/compile/loop_cases.h"

namespace gallop::compile {
namespace {

std::string cpu_prefix_of_cuda() {
  const fs::path header = fs::path(GALLOP_FIXTURES) / "cuda_on_cpu.h";
  return read_file(header, 1 << 20) + cuda_prefix();
}

// A function around the kernels that starts them one after the other.
using RunKernels = bool (*)(const uint64_t* slots, const uint32_t* shape,
                            const uint32_t* last_shape, const uint32_t* total_shape, bool aligned,
                            bool reversed);

KernelSource with_launcher(const CudaPlan& plan) {
  const KernelSource kernel = cuda_source(plan);
  const bool has_columns = !plan.loop.column_reductions.empty();
  KernelSource result{.symbol = "run_" + kernel.symbol, .text = kernel.text};
  const auto launch = [&](const char* shape, const std::string& name) {
    return fmt::format(
        "  if (!launch({}, reversed, [&] {{ gallop_cuda::{}(a); }})) return false;\n", shape, name);
  };
  result.text += fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) bool {}(\n"
      "    const unsigned long long* slots, const unsigned* shape, const unsigned* last_shape,\n"
      "    const unsigned* total_shape, bool aligned, bool reversed) {{\n"
      "  gallop_cuda::{}_space::Slots a;\n  memcpy(a.slots, slots, sizeof a.slots);\n",
      result.symbol, kernel.symbol);
  if (plan.width > 1) {
    result.text +=
        "  if (aligned) {\n" + launch("shape", kernel.symbol + "_aligned") + "  } else {\n";
  }
  result.text += launch("shape", kernel.symbol) + (plan.width > 1 ? "  }\n" : "");
  if (has_columns) result.text += launch("last_shape", kernel.symbol + "_columns");
  if (!plan.loop.totals.empty()) result.text += launch("total_shape", kernel.symbol + "_totals");
  result.text += "  return true;\n}\n";
  return result;
}

struct Runner {
  CudaPlan plan;
  RunKernels kernels;

  void operator()(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
                  bool aligned, bool reversed) const {
    std::vector<char> totals(static_cast<size_t>(total_bytes(plan)));
    const auto slots = cuda_arguments(plan, inputs, outputs, totals.data());
    const std::array shape = {plan.grid[0], plan.grid[1], plan.block[0], plan.block[1]};
    const std::array<uint32_t, 4> last = {plan.last_grid, 1, plan.last_block[0],
                                          plan.last_block[1]};
    const std::array<uint32_t, 4> total = {1, 1, plan.total_block, 1};
    ASSERT_TRUE(kernels(slots.data(), shape.data(), last.data(), total.data(), aligned, reversed))
        << "a barrier that not all threads reach";
  }
};

// But for the bits of NaN, which a compiler for the CPU leaves open.
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

TEST(CudaSource, ComputesWhatTheProgramSays) {
  const char* seed = std::getenv("GALLOP_TEST_SEED");
  RandomPrograms random(seed == nullptr ? 30 : static_cast<uint64_t>(std::atoll(seed)));
  constexpr int64_t kForms = 40;
  const CacheFolder folder;
  KernelCompiler compiler({.cache_folder = folder.path()});
  std::vector<LoopCase> cases;
  std::vector<CudaPlan> plans;
  std::vector<KernelSource> sources;
  for (int64_t form = 0; form < kForms; ++form) {
    const LoopProgram program = random.make();
    cases.push_back(make_case(random, program));
    cases.push_back(make_case(random, random.resized(program)));
    for (const int64_t unit : {4, 8}) {
      cases.push_back(make_case(random, random.resized(program, unit)));
    }
  }
  for (const LoopCase& c : cases) {
    plans.push_back(cuda_plan(c.program, /*busy_threads=*/1));
    // What only loops of gigabytes or of very long rows get.
    plans.back().long_index = random.chance(20);
    if (random.chance(30)) plans.back().shared_columns = 0;
    sources.push_back(with_launcher(plans.back()));
  }
  const auto kernels = compiler.submit(cpu_prefix_of_cuda(), sources);
  int64_t exact = 0, totals = 0;
  std::map<CudaPlan::Form, int64_t> forms;
  std::map<int, int64_t> widths;
  for (size_t i = 0; i < cases.size() && !HasFailure(); ++i) {
    const CompiledKernel& kernel = kernels[i].get();
    ASSERT_NE(kernel.function, nullptr) << kernel.lost << "\n" << sources[i].text;
    const Runner runner{plans[i], reinterpret_cast<RunKernels>(kernel.function)};
    ++forms[plans[i].form];
    ++widths[plans[i].width];
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
}

}  // namespace
}  // namespace gallop::compile

#include <cmath>
#include <cstdlib>
#include <set>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/compile/codegen/cpu_source.h"
#include "gallop/compile/codegen/loop_kernel.h"
#include "gallop/compile/codegen/loop_values.h"
#include "gallop/compile/codegen/op_traits.h"
#include "unit/compile/cache_folder.h"
#include "unit/compile/loop_reference.h"
#include "unit/compile/random_programs.h"

namespace gallop::compile {
namespace {

/// A program with all that it reads, and what it should write.
struct Case {
  LoopProgram program;
  std::vector<Memory> inputs;
  std::vector<int32_t> same_memory;  // For each output the input whose memory it takes, or -1.
};

Memory random_memory(RandomPrograms& random, const LoopOperand& operand,
                     const std::vector<int64_t>& sizes) {
  const int64_t count = reach_of(operand, sizes);
  Memory memory(static_cast<size_t>(count * bytes_of(operand.format)));
  for (int64_t i = 0; i < count; ++i) {
    write_number(memory, operand.format, i, random.number(operand.format));
  }
  return memory;
}

// Inputs that are read once all rows are done: nothing may be written over them.
void find_late(const LoopProgram& program, int32_t at, std::set<int32_t>& late) {
  const Expression& e = program.expressions[static_cast<size_t>(at)];
  if (e.op == Op::kInput) late.insert(e.index);
  if (is_reduction(e.op)) return;
  for (int i = 0; i < traits_of(e.op).arity; ++i) {
    find_late(program, e.arguments[static_cast<size_t>(i)], late);
  }
}

Case make_case(RandomPrograms& random, LoopProgram program) {
  Case result{.program = std::move(program)};
  for (const LoopOperand& input : result.program.inputs) {
    result.inputs.push_back(random_memory(random, input, result.program.sizes));
  }
  const auto traits = analyze(result.program);
  std::set<int32_t> taken;
  for (const Output& output : result.program.outputs) {
    if (traits[static_cast<size_t>(output.value)].level < Level::kColumn) continue;
    find_late(result.program, output.value, taken);
  }
  for (const Output& output : result.program.outputs) {
    int32_t same = -1;
    for (size_t i = 0; i < result.program.inputs.size() && random.chance(40); ++i) {
      const LoopOperand& input = result.program.inputs[i];
      const auto at = static_cast<int32_t>(i);
      if (input.format == output.operand.format && input.strides == output.operand.strides &&
          !taken.contains(at)) {
        same = at;
      }
    }
    if (same >= 0) taken.insert(same);
    result.same_memory.push_back(same);
  }
  return result;
}

std::string describe(const LoopProgram& program) {
  std::string text = fmt::format("row_dims {} sizes", program.row_dims);
  for (const int64_t size : program.sizes) text += fmt::format(" {}", size);
  const auto add = [&](const char* name, const LoopOperand& operand) {
    text += fmt::format("\n{} {}", name, name_of(operand.format));
    for (const int64_t stride : operand.strides) text += fmt::format(" {}", stride);
  };
  for (const LoopOperand& input : program.inputs) add("input", input);
  for (const Output& output : program.outputs) {
    add("output", output.operand);
    text += fmt::format(" = {}", output.value);
  }
  for (size_t i = 0; i < program.expressions.size(); ++i) {
    const Expression& e = program.expressions[i];
    text += fmt::format("\n{}: {} {} {} {} index {} number {} {}", i, traits_of(e.op).name,
                        e.arguments[0], e.arguments[1], e.arguments[2], e.index, e.number,
                        name_of(e.format));
  }
  return text;
}

std::vector<Memory> run(const LoopKernel& kernel, const Case& c) {
  std::vector<Memory> inputs = c.inputs, outputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Memory& input : inputs) in.push_back(input.data());
  outputs.reserve(c.program.outputs.size());
  for (size_t i = 0; i < c.program.outputs.size(); ++i) {
    const LoopOperand& operand = c.program.outputs[i].operand;
    const int32_t same = c.same_memory[i];
    outputs.emplace_back(
        static_cast<size_t>(reach_of(operand, c.program.sizes) * bytes_of(operand.format)));
    out.push_back(same < 0 ? outputs.back().data() : inputs[static_cast<size_t>(same)].data());
  }
  kernel.run(in, out);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (c.same_memory[i] >= 0) outputs[i] = inputs[static_cast<size_t>(c.same_memory[i])];
  }
  return outputs;
}

// How many numbers had to be equal.
int64_t compare(const Case& c, const std::vector<Memory>& found,
                const std::vector<std::vector<Bounded>>& wanted) {
  int64_t exact = 0;
  for (size_t o = 0; o < wanted.size(); ++o) {
    const Format format = c.program.outputs[o].operand.format;
    for (size_t i = 0; i < wanted[o].size(); ++i) {
      const auto [number, slack] = wanted[o][i];
      const double got = read_number(found[o], format, static_cast<int64_t>(i));
      if (!(slack < std::numeric_limits<double>::infinity())) continue;
      exact += slack == 0;
      const bool same = got == number || (std::isnan(got) && std::isnan(number));
      if (same || std::abs(got - number) <= slack) continue;
      ADD_FAILURE() << fmt::format("output {} at {}: {} where {} is right, give or take {}\n", o, i,
                                   got, number, slack)
                    << describe(c.program);
      return exact;
    }
  }
  return exact;
}

class RandomLoops : public testing::TestWithParam<kernel::Isa> {};

TEST_P(RandomLoops, ComputeWhatTheProgramSays) {
  if (!kernel::has(GetParam())) GTEST_SKIP() << "this machine does not have these instructions";
  const char* seed = std::getenv("GALLOP_TEST_SEED");
  RandomPrograms random(seed == nullptr ? 20 : static_cast<uint64_t>(std::atoll(seed)));
  const int64_t forms = GetParam() == kernel::best_isa() ? 160 : 40;
  constexpr int64_t kSizes = 8;
  const CacheFolder folder;
  KernelCompiler compiler({.cache_folder = folder.path(), .isa = GetParam()});
  std::vector<Case> cases;
  std::vector<LoopProgram> programs;
  for (int64_t form = 0; form < forms; ++form) {
    cases.push_back(make_case(random, random.make()));
    for (int64_t size = 1; size < kSizes; ++size) {
      LoopProgram other = random.resized(cases[static_cast<size_t>(form * kSizes)].program);
      cases.push_back(make_case(random, std::move(other)));
    }
  }
  for (const Case& c : cases) programs.push_back(c.program);
  const auto kernels = LoopKernel::make(programs, compiler);
  int64_t exact = 0, kept = 0;
  for (size_t i = 0; i < cases.size() && !HasFailure(); ++i) {
    ASSERT_TRUE(kernels[i]->wait()) << kernels[i]->lost() << describe(programs[i]);
    const auto wanted = interpret(programs[i], cases[i].inputs, GetParam() == kernel::Isa::kAmx);
    exact += compare(cases[i], run(*kernels[i], cases[i]), wanted);
  }
  for (const LoopProgram& program : programs) kept += !plan(program).kept.empty();
  EXPECT_GT(exact, 100'000) << "numbers that have to be equal";
  EXPECT_GT(kept, kSizes) << "programs that leave values to later sweeps";
}

INSTANTIATE_TEST_SUITE_P(Compile, RandomLoops,
                         testing::Values(kernel::Isa::kBaseline, kernel::Isa::kAvx2,
                                         kernel::Isa::kAvx512, kernel::Isa::kAmx));

}  // namespace
}  // namespace gallop::compile

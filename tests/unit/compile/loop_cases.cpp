#include "unit/compile/loop_cases.h"

#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/compile/codegen/loop_values.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

Memory random_memory(RandomPrograms& random, const LoopOperand& operand,
                     const std::vector<int64_t>& sizes) {
  const int64_t count = reach_of(operand, sizes);
  Memory memory(static_cast<size_t>(count * bytes_of(operand.format)));
  for (int64_t i = 0; i < count; ++i) {
    write_number(memory, operand.format, i, random.number(operand.format));
  }
  return memory;
}

// Inputs that are read after all rows are done must not be overwritten.
void find_late(const LoopProgram& program, int32_t at, std::set<int32_t>& late) {
  const Expression& e = program.expressions[static_cast<size_t>(at)];
  if (e.op == Op::kInput) late.insert(e.index);
  if (is_reduction(e.op)) return;
  for (int i = 0; i < traits_of(e.op).arity; ++i) {
    find_late(program, e.arguments[static_cast<size_t>(i)], late);
  }
}

}  // namespace

LoopCase make_case(RandomPrograms& random, LoopProgram program) {
  LoopCase result{.program = std::move(program)};
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

std::vector<LoopCase> make_cases_for_gpus(RandomPrograms& random, int64_t programs) {
  std::vector<LoopCase> cases;
  for (int64_t i = 0; i < programs; ++i) {
    const LoopProgram program = random.make();
    cases.push_back(make_case(random, program));
    cases.push_back(make_case(random, random.resized(program)));
    for (const int64_t unit : {4, 8}) {
      cases.push_back(make_case(random, random.resized(program, unit)));
    }
  }
  return cases;
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

std::vector<Memory> run(const LoopCase& c, const RunLoop& loop) {
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
  loop(in, out);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (c.same_memory[i] >= 0) outputs[i] = inputs[static_cast<size_t>(c.same_memory[i])];
  }
  return outputs;
}

int64_t compare(const LoopCase& c, const std::vector<Memory>& found,
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

}  // namespace gallop::compile

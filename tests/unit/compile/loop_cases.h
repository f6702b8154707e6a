#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gallop/compile/codegen/loop_program.h"
#include "unit/compile/loop_reference.h"
#include "unit/compile/random_programs.h"

namespace gallop::compile {

/// A program with its inputs.
struct LoopCase {
  LoopProgram program;
  std::vector<Memory> inputs;
  std::vector<int32_t> same_memory;  ///< For each output the input whose memory it takes, or -1.
};

LoopCase make_case(RandomPrograms& random, LoopProgram program);

/// Random programs for GPUs, each in four sizes: any two, and multiples of 4 and 8, of which
/// kernels read and write several numbers at once.
std::vector<LoopCase> make_cases_for_gpus(RandomPrograms& random, int64_t programs);

/// The program as text, for messages.
std::string describe(const LoopProgram& program);

using RunLoop =
    std::function<void(const std::vector<const void*>& inputs, const std::vector<void*>& outputs)>;
/// The results of a loop for a case.
std::vector<Memory> run(const LoopCase& c, const RunLoop& loop);

/// Fails the test at the first number that is wrong. Returns how many had to be equal.
int64_t compare(const LoopCase& c, const std::vector<Memory>& found,
                const std::vector<std::vector<Bounded>>& wanted);

}  // namespace gallop::compile

#pragma once

#include <cstdint>
#include <vector>

#include "gallop/compile/codegen/loop_program.h"

namespace gallop::compile {

/// A value of the reference and how far a kernel may be from it: 0 where it must be equal, infinite
/// where it may be anything.
struct Bounded {
  double number = 0;  ///< Integers to 2^53 and bools (0, 1) too.
  double slack = 0;
};

/// Bytes of an array that an operand of a program of these sizes reaches.
using Memory = std::vector<std::byte>;
int64_t reach_of(const LoopOperand& operand, const std::vector<int64_t>& sizes);

double read_number(const Memory& memory, Format format, int64_t at);
void write_number(Memory& memory, Format format, int64_t at, double number);

/// `number` in the format. Where `flushes` is true, bf16 below 2^-126 are 0.
double rounded(double number, Format format, bool flushes);

/// Computes a program as it says, one element after the other in plain C++: each output as an array
/// with the operand's strides.
std::vector<std::vector<Bounded>> interpret(const LoopProgram& program,
                                            const std::vector<Memory>& inputs, bool flushes);

}  // namespace gallop::compile

#include "gallop/compile/codegen/loop_program.h"

#include "gallop/compile/codegen/loop_values.h"

namespace gallop::compile {

const char* name_of(Format format) {
  switch (format) {
    case Format::kFp32: return "fp32";
    case Format::kBf16: return "bf16";
    case Format::kFp16: return "fp16";
    case Format::kFp64: return "fp64";
    case Format::kBool: return "bool";
    case Format::kInt32: return "int32";
    case Format::kInt64: return "int64";
  }
  return "no format";
}

int64_t bytes_of(Format format) {
  switch (format) {
    case Format::kBool: return 1;
    case Format::kBf16:
    case Format::kFp16: return 2;
    case Format::kFp32:
    case Format::kInt32: return 4;
    case Format::kFp64:
    case Format::kInt64: return 8;
  }
  return 0;
}

void check(const LoopProgram& program) { analyze(program); }

}  // namespace gallop::compile

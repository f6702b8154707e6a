// Programs of torch.export: what is not valid is a DataError, and what is can be prepared to run.
#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/blocks.h"
#include "gallop/model/exported/evaluation_mode.h"
#include "gallop/model/exported/interpreter.h"
#include "gallop/model/exported/missing_operators.h"
#include "gallop/tensor/zip_archive.h"
#include "unit/fixtures.h"

using namespace gallop;
using namespace gallop::model::exported;

namespace {

void prepare(const Program& program) {
  const EvaluationProgram evaluation = switch_to_evaluation(program);
  for (const auto kind : {InputSpec::Kind::kUserInput, InputSpec::Kind::kBuffer}) {
    written_inputs(program, kind);
  }
  const size_t missing = missing_operators(program.graph).size();
  for (const Graph* const graph : {&program.graph, &evaluation.program.graph}) {
    try {
      const Interpreter interpreter(*graph, {}, "fuzz");
      require(missing == 0);
      require(interpreter.inputs() == program.inputs.size());
    } catch (const DataError&) {
      // An operator that LibTorch does not have, or that does not take such arguments.
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  try {
    prepare(parse_program(json, "fuzz"));
  } catch (const DataError&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const char* const name : {"mlp", "cond", "no-grad", "set-item"}) {
    ZipArchive zip(fixtures() / "exported" / (std::string(name) + ".pt2"));
    for (const ZipEntry& entry : zip.entries()) {
      if (entry.name.ends_with("/models/model.json")) seeds.emplace_back(zip.bytes(entry));
    }
  }
  return seeds;
}

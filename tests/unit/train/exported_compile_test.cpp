// Compiled steps of exported programs against the same steps run eagerly.
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/compile/passes.h"
#include "unit/model/exported_case.h"

namespace gallop::model::exported {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int kSteps = 4;

// Steps of which no graph can be recorded, and why.
const std::map<std::string, std::string> kEager = {
    {"cond", "aten::_local_scalar_dense reads a value on the host: node 'cond' (cond)"}};

class ExportedCompile : public testing::TestWithParam<std::string> {};

TEST_P(ExportedCompile, CompiledStepsHaveTheBitsOfEagerOnes) {
  const Json json = read(folder() / (GetParam() + ".json"));
  for (const Json& run : json["runs"]) {
    Step eager(json, GetParam()), recorded(json, GetParam());
    const Tensors arguments = eager.arguments(run["sizes"]);
    compile::CompiledFunction compiled([&](const Tensors& in, int64_t) { return recorded(in); },
                                       recorded.state(),
                                       {.passes_off = compile::names_of_rounding_passes()});
    for (int step = 0; step < kSteps; ++step) {
      seed(c10::kCPU, static_cast<uint64_t>(step));
      const at::Tensor expected = eager(copies(arguments)).front();
      seed(c10::kCPU, static_cast<uint64_t>(step));
      const at::Tensor actual = compiled(copies(arguments)).front();
      EXPECT_TRUE(actual.equal(expected)) << "step " << step << ": " << actual << expected;
    }
    for (size_t i = 0; i < eager.state().size(); ++i) {
      EXPECT_TRUE(recorded.state()[i].equal(eager.state()[i])) << "state " << i;
    }
    const auto known = kEager.find(GetParam());
    if (known == kEager.end()) {
      EXPECT_EQ(compiled.report().replayed, kSteps)
          << fmt::format("{}", fmt::join(compiled.report().reasons, "\n"));
    } else {
      ASSERT_EQ(compiled.report().reasons.size(), 1U);
      EXPECT_NE(compiled.report().reasons.front().find(known->second), std::string::npos)
          << compiled.report().reasons.front();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Archives, ExportedCompile, testing::ValuesIn(names_in(folder())),
                         name_of_case);

}  // namespace
}  // namespace gallop::model::exported

// Compiled steps of exported programs against the same steps run eagerly.
#include <map>
#include <set>

#include <ATen/core/grad_mode.h>
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
    {"cond", "aten::_local_scalar_dense reads a value on the host: node 'cond' (cond)"},
    {"fno", "a tensor is a lazy conjugate or negative"}};

/// A step of SGD with its own weights.
class Step {
 public:
  Step(const Json& json, const std::string& name)
      : json_(json), trained_(json, name, /*training=*/true, /*has_own_dropout=*/false) {
    for (const auto& [key, tensor] : trained_.tensors) {
      if (seen_.insert(tensor.unsafeGetTensorImpl()).second) state_.push_back(tensor);
    }
  }

  const Tensors& state() const { return state_; }

  /// The arguments are the inputs in the order of `names`, and the target if there is one.
  Tensors operator()(const Tensors& arguments, const std::vector<std::string>& names) {
    for (const at::Tensor& tensor : state_) tensor.mutable_grad() = at::Tensor();
    std::map<std::string, at::Tensor> given;
    for (size_t i = 0; i < names.size(); ++i) given[names[i]] = arguments[i];
    const at::Tensor target = arguments.size() > names.size() ? arguments.back() : at::Tensor();
    const at::Tensor loss = trained_.loss(trained_.run_on(given), target);
    loss.backward();
    const at::NoGradGuard no_grad;
    for (const at::Tensor& tensor : state_) {
      if (!tensor.requires_grad() || !tensor.grad().defined()) continue;
      tensor.sub_(tensor.grad(), json_["learning_rate"].get<double>());
    }
    return {loss.detach()};
  }

  const Trained& trained() const { return trained_; }

 private:
  const Json& json_;
  Trained trained_;
  std::set<const void*> seen_;
  Tensors state_;
};

void seed(int number) {
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  generator.set_current_seed(static_cast<uint64_t>(number));
}

class ExportedCompile : public testing::TestWithParam<std::string> {};

TEST_P(ExportedCompile, CompiledStepsHaveTheBitsOfEagerOnes) {
  const Json json = read(folder() / (GetParam() + ".json"));
  for (const Json& run : json["runs"]) {
    Step eager(json, GetParam()), recorded(json, GetParam());
    std::vector<std::string> names;
    Tensors arguments;
    for (const auto& [name, tensor] : eager.trained().inputs(run["sizes"])) {
      names.push_back(name);
      arguments.push_back(tensor);
    }
    {
      const at::NoGradGuard no_grad;
      const Trained other(json, GetParam(), /*training=*/true);
      const at::Tensor target = other.target(other.run(run["sizes"]));
      if (target.defined()) arguments.push_back(target);
    }
    compile::CompiledFunction compiled(
        [&](const Tensors& in, int64_t) { return recorded(in, names); }, recorded.state(),
        {.passes_off = compile::names_of_rounding_passes()});
    const auto copies = [&] {  // Some programs write their inputs.
      Tensors all;
      for (const at::Tensor& argument : arguments) all.push_back(argument.clone());
      return all;
    };
    for (int step = 0; step < kSteps; ++step) {
      seed(step);
      const at::Tensor expected = eager(copies(), names).front();
      seed(step);
      const at::Tensor actual = compiled(copies()).front();
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

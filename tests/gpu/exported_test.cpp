// Exported programs on a real GPU: evaluation against the CPU, compiled steps against eager ones.
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/app/libtorch_warnings.h"
#include "gallop/compile/compiled_function.h"
#include "gpu/on_gpu.h"
#include "unit/model/exported_case.h"

namespace gallop::model::exported {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int kSteps = 5;

// Steps that are no graph of the device, and why.
const std::map<std::string, std::string> kEager = {
    {"cond", "reads a value on the host"},
    {"fno", "a tensor is a lazy conjugate or negative"},
    {"gru", "changes the memory of a tensor"},
    {"lstm", "changes the memory of a tensor"},
    {"set-item", "changes an argument"}};

class ExportedOnGpu : public OnGpu<testing::TestWithParam<std::string>> {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    // Some of the programs have operators without a deterministic implementation.
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
    at::globalContext().setAllowTF32CuBLAS(false);
    at::globalContext().setAllowTF32CuDNN(false);
  }

  app::LibtorchWarnings warnings_{[](const std::string&) {}};
};

double difference(const at::Tensor& tensor, const at::Tensor& expected) {
  const at::Tensor a = tensor.cpu().to(at::kDouble), b = expected.to(at::kDouble);
  const double size = b.numel() == 0 ? 0 : b.abs().max().item<double>();
  return b.numel() == 0 ? 0 : (a - b).abs().max().item<double>() / (size + 1e-6);
}

bool is_of_16_bits(const std::string& name) { return name == "bf16" || name == "autocast"; }

TEST_P(ExportedOnGpu, EvaluatesAsOnTheCpu) {
  const Json json = read(folder() / (GetParam() + ".json"));
  const Trained here(json, GetParam(), /*training=*/false),
      there(json, GetParam(), /*training=*/false, /*has_own_dropout=*/false, device_);
  const at::NoGradGuard no_grad;
  for (const Json& run : json["runs"]) {
    const auto expected = here.run(run["sizes"]);
    for (const auto& [name, tensor] : there.run(run["sizes"])) {
      EXPECT_LT(difference(tensor, expected.at(name)), is_of_16_bits(GetParam()) ? 0.03 : 1e-3)
          << name;
    }
  }
}

TEST_P(ExportedOnGpu, CompiledStepsAreOneGraphWithTheLossesOfEagerOnes) {
  const Json json = read(folder() / (GetParam() + ".json"));
  const Json& run = json["runs"].front();
  Step on_cpu(json, GetParam()), eager(json, GetParam(), device_),
      recorded(json, GetParam(), device_);
  const Tensors arguments = eager.arguments(run["sizes"]);
  compile::CompiledFunction compiled([&](const Tensors& in, int64_t) { return recorded(in); },
                                     recorded.state());
  const double tolerance = is_of_16_bits(GetParam()) ? 0.03 : 2e-3;
  const Tensors arguments_of_cpu = on_cpu.arguments(run["sizes"]);
  for (int step = 0; step < kSteps; ++step) {
    for (const c10::Device device : {c10::Device(c10::kCPU), device_}) {
      seed(device, static_cast<uint64_t>(step));
    }
    const at::Tensor expected = on_cpu(copies(arguments_of_cpu)).front();
    const at::Tensor plain = eager(copies(arguments)).front().cpu();
    seed(device_, static_cast<uint64_t>(step));
    const at::Tensor actual = compiled(copies(arguments)).front();
    EXPECT_LT(difference(actual, plain), tolerance) << "step " << step;
    if (!json["draws"]["train"].get<bool>()) {
      EXPECT_LT(difference(plain, expected), tolerance) << "step " << step;
    }
  }
  const auto known = kEager.find(GetParam());
  const compile::CompileReport& report = compiled.report();
  const std::string lines =
      fmt::format("{}\n{}", fmt::join(report.reasons, "\n"), fmt::join(report.fallbacks, "\n"));
  if (known == kEager.end()) {
    EXPECT_EQ(report.captured, kSteps - 1) << lines;
  } else {
    EXPECT_NE(lines.find(known->second), std::string::npos) << lines;
  }
}

INSTANTIATE_TEST_SUITE_P(Archives, ExportedOnGpu, testing::ValuesIn(names_in(folder())),
                         name_of_case);

}  // namespace
}  // namespace gallop::model::exported

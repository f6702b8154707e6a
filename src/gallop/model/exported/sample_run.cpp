#include "gallop/model/exported/sample_run.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/norm.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/model/exported/evaluation_mode.h"
#include "gallop/model/exported/interpreter.h"
#include "gallop/model/exported/json_reader.h"
#include "gallop/model/exported/runnable_program.h"
#include "gallop/model/exported/sample_inputs.h"

namespace gallop::model::exported {

namespace {

// Gradients that are 0 but for rounding, as of a bias before batch norm, have norms of at most
// about the largest norm times the epsilon of fp32, 1.2e-7, and other digits in each order of
// operations. On this scale their differences are below 1e-5, and an error of a gradient of a
// hundredth of the largest norm or more is still relative to that gradient alone.
constexpr double kLeastNorm = 1e-2;

// All tensors of an archive by each of their names, with the constants that `own` has in place of
// those of the same names.
std::map<std::string, at::Tensor> tensors_of(Archive& archive, const std::string& model,
                                             std::map<std::string, at::Tensor> own) {
  std::map<std::string, at::Tensor> tensors = std::move(own);
  add_by_name(archive.weights(model), tensors);
  add_by_name(archive.constants(model), tensors);
  return tensors;
}

// As _objective() of the export helper; undefined if no output is of floating point.
at::Tensor objective_of(const std::vector<c10::IValue>& outputs) {
  at::Tensor total;
  for (const c10::IValue& output : outputs) {
    if (!output.isTensor() || !output.toTensor().is_floating_point()) continue;
    if (output.toTensor().numel() == 0) continue;
    const at::Tensor values = output.toTensor().flatten().to(c10::kFloat);
    const at::Tensor mean = (values * at::cos(at::arange(values.numel()))).mean();
    total = total.defined() ? total + mean : mean;
  }
  return total;
}

// `least`: the smallest number that differences are relative to.
void add_error(double expected, double actual, double least, const std::string& name,
               SampleRun& run) {
  if (expected == actual) return;
  const double scale = std::max({std::abs(expected), least, 1e-30});
  const double error = std::abs(expected - actual) / scale;
  if (error <= run.error) return;
  run.error = error;
  run.worst = name;
}

void compare(const Json& reference, const Place& place, SampleRun& run) {
  const auto mode = reference.find(run.mode);
  if (mode == reference.end()) return;
  try {
    run.expected_objective = mode->at("objective").get<double>();
    run.export_error = mode->value("export_error", 0.0);
    run.has_reference = true;
    add_error(run.expected_objective, run.objective, 0, "objective", run);
    if (run.mode != Archive::kTrain) return;
    const auto norms = mode->at("gradient_norms").get<std::map<std::string, double>>();
    double largest = 0;
    for (const auto& [name, norm] : norms) largest = std::max(largest, norm);
    for (const auto& [name, norm] : norms) {
      const auto found = run.gradient_norms.find(name);
      add_error(norm, found == run.gradient_norms.end() ? 0 : found->second, kLeastNorm * largest,
                name, run);
    }
  } catch (const nlohmann::json::exception& error) {
    place.fail(error.what());
  }
}

uint64_t seed_of(const Json& reference) {
  const auto seed = reference.find("seed");
  return seed != reference.end() && seed->is_number_unsigned() ? seed->get<uint64_t>() : 0;
}

// torch.manual_seed(), for the CPU.
void seed_generator(uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

SampleRun run_program(const Program& program, const std::map<std::string, at::Tensor>& tensors,
                      const std::vector<c10::IValue>& sample, uint64_t seed, bool trains,
                      const std::string& file) {
  SampleRun run{.mode = trains ? Archive::kTrain : Archive::kEval};
  const Interpreter interpreter(program.graph, {.device = c10::kCPU, .has_own_dropout = false},
                                file);
  std::vector<c10::IValue> values = values_of(program, tensors, file);
  size_t next = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const InputSpec::Kind kind = program.inputs[i].kind;
    if (kind != InputSpec::Kind::kUserInput && kind != InputSpec::Kind::kUserConstant) continue;
    if (next >= sample.size()) {
      throw DataError(
          fmt::format("{}: the sample has {} inputs, and the program more", file, sample.size()));
    }
    const c10::IValue& value = sample[next++];
    values[i] = value.isTensor() ? c10::IValue(value.toTensor().clone()) : value;
  }
  seed_generator(seed);
  const at::AutoGradMode grad_mode(trains);
  at::Tensor objective;
  try {
    objective = objective_of(interpreter.run(std::move(values)));
    if (!objective.defined()) {
      throw UsageError(fmt::format("{}: has no floating-point output", file));
    }
    if (trains && objective.requires_grad()) objective.backward();
  } catch (const c10::Error& error) {
    throw UsageError(error.what_without_backtrace());
  }
  run.objective = objective.detach().item().toDouble();
  if (!trains) return run;
  std::set<const at::TensorImpl*> seen;  // Tied weights have several names.
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.requires_grad()) continue;
    if (!tensor.grad().defined()) {
      if (seen.insert(tensor.unsafeGetTensorImpl()).second) run.without_gradient.push_back(name);
    } else {
      run.gradient_norms[name] = tensor.grad().to(c10::kDouble).norm().item().toDouble();
    }
  }
  return run;
}

bool has_evaluation_program(const Archive& archive) { return archive.models().size() > 1; }

// The program for evaluation; empty if evaluation is unknown.
std::optional<Program> evaluation_program(Archive& archive) {
  if (has_evaluation_program(archive)) return archive.program(Archive::kEval);
  EvaluationProgram evaluation = switch_to_evaluation(archive.program(archive.training_program()));
  if (!evaluation.unknown.empty()) return std::nullopt;
  return std::move(evaluation.program);
}

}  // namespace

std::vector<SampleRun> run_sample(Archive& archive) {
  const std::string main = archive.training_program();
  const std::string file = printable(archive.path().string());
  const std::vector<c10::IValue> sample = sample_inputs(archive);
  std::vector<SampleRun> runs;
  if (sample.empty()) return runs;
  const std::string_view text = archive.extra("gallop.json");
  const Place place(fmt::format("{}: extra/gallop.json", file));
  const Json reference = text.empty() ? Json::object() : parse_json(text, place);
  const uint64_t seed = seed_of(reference);
  const auto run = [&](const Program& program, bool trains) {
    std::map<std::string, at::Tensor> own;
    if (!trains && has_evaluation_program(archive)) {
      own = archive.constants_of(Archive::kEval, program);
    }
    // Training writes buffers, so that evaluation has its own.
    runs.push_back(run_program(program, tensors_of(archive, main, std::move(own)), sample, seed,
                               trains, file));
    compare(reference, place, runs.back());
  };
  run(archive.program(main), /*trains=*/true);
  if (const auto evaluation = evaluation_program(archive)) run(*evaluation, /*trains=*/false);
  return runs;
}

}  // namespace gallop::model::exported

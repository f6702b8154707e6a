// Compares kernels that are generated and compiled at run time with LibTorch's operators and the
// hand-written kernels, alternately in one process, and measures the compilation time:
//   bench_codegen [--rounds N] [--json FILE]
// Reports the median of each form, and GB/s of the compulsory memory traffic.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/clock.h"
#include "gallop/base/heap.h"
#include "gallop/compile/codegen/loop_builder.h"
#include "gallop/compile/codegen/loop_kernel.h"
#include "gallop/kernel/activation.h"
#include "gallop/kernel/layer_norm.h"

namespace {

using namespace gallop;
using compile::Format;
using compile::LoopBuilder;
using compile::LoopProgram;
using compile::Op;
using compile::Value;

struct Form {
  std::string name;
  std::function<void()> run;
};

struct Case {
  std::string name;
  LoopProgram program;
  std::vector<at::Tensor> inputs, outputs;
  std::vector<Form> others;
};

Format format_of(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat ? Format::kFp32 : Format::kBf16;
}

const char* name_of(at::ScalarType type) { return type == at::kFloat ? "fp32" : "bf16"; }

Case bias_gelu(int64_t rows, int64_t columns, bool by_tanh, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, columns}).to(type), bias = at::randn({columns}).to(type);
  LoopBuilder b({rows, columns});
  const Value in = b.input(format_of(x), {columns, 1}), shift = b.input(format_of(x), {0, 1});
  const Value sum = b.apply(Op::kAdd, in, shift);
  b.output(by_tanh ? gelu_tanh(b, sum) : gelu(b, sum), format_of(x), {columns, 1});
  const auto kind = by_tanh ? kernel::Activation::kGeluTanh : kernel::Activation::kGelu;
  return {.name = fmt::format("bias+gelu{}/{}/{}x{}", by_tanh ? "-tanh" : "", name_of(type), rows,
                              columns),
          .program = std::move(b).finish(),
          .inputs = {x, bias},
          .outputs = {at::empty_like(x)},
          .others = {{"aten", [=] { at::gelu(x + bias, by_tanh ? "tanh" : "none"); }},
                     {"by hand", [=] { kernel::activation(kind, x, bias); }}}};
}

Case layer_norm(int64_t rows, int64_t columns, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, columns}).to(type);
  const at::Tensor weight = at::ones({columns}), bias = at::zeros({columns});
  LoopBuilder b({rows, columns}, 1);
  const Value in = b.input(format_of(x), {columns, 1});
  const double share = 1.0 / static_cast<double>(columns);
  const Value mean = b.apply(Op::kMultiply, b.apply(Op::kRowSum, in), share);
  const Value off = b.apply(Op::kSubtract, in, mean);
  const Value squares = b.apply(Op::kRowSum, b.apply(Op::kMultiply, off, off));
  const Value inverse =
      b.apply(Op::kRsqrt, b.apply(Op::kAdd, b.apply(Op::kMultiply, squares, share), 1e-5));
  const Value gain = b.input(Format::kFp32, {0, 1}), shift = b.input(Format::kFp32, {0, 1});
  const Value scaled = b.apply(Op::kMultiply, b.apply(Op::kMultiply, off, inverse), gain);
  b.output(b.apply(Op::kAdd, scaled, shift), format_of(x), {columns, 1});
  b.output(mean, Format::kFp32, {1, 0});
  b.output(inverse, Format::kFp32, {1, 0});
  const at::Tensor w = weight.to(type), c = bias.to(type);
  return {
      .name = fmt::format("layer-norm/{}/{}x{}", name_of(type), rows, columns),
      .program = std::move(b).finish(),
      .inputs = {x, weight, bias},
      .outputs = {at::empty_like(x), at::zeros({rows}), at::zeros({rows})},
      .others = {{"aten", [=] { at::layer_norm(x, {columns}, w, c); }},
                 {"by hand", [=] { kernel::layer_norm(x, {}, weight, bias, {.output = type}); }}}};
}

Case softmax(int64_t rows, int64_t columns, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, columns}).to(type);
  LoopBuilder b({rows, columns}, 1);
  const Value in = b.input(format_of(x), {columns, 1});
  const Value e = b.apply(Op::kExp, b.apply(Op::kSubtract, in, b.apply(Op::kRowMax, in)));
  const Value inverse = b.apply(Op::kReciprocal, b.apply(Op::kRowSum, e));
  b.output(b.apply(Op::kMultiply, e, inverse), format_of(x), {columns, 1});
  return {.name = fmt::format("softmax/{}/{}x{}", name_of(type), rows, columns),
          .program = std::move(b).finish(),
          .inputs = {x},
          .outputs = {at::empty_like(x)},
          .others = {{"aten", [=] { at::softmax(x, -1); }}}};
}

Case add_relu_sums(int64_t rows, int64_t columns, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, columns}).to(type), y = at::randn({rows, columns}).to(type);
  LoopBuilder b({rows, columns}, 1);
  const Value sum =
      b.apply(Op::kAdd, b.input(format_of(x), {columns, 1}), b.input(format_of(x), {columns, 1}));
  const Value result = b.apply(Op::kRelu, sum);
  b.output(result, format_of(x), {columns, 1});
  b.output(b.apply(Op::kColumnSum, result), Format::kFp32, {0, 1});
  return {.name = fmt::format("add+relu+sums/{}/{}x{}", name_of(type), rows, columns),
          .program = std::move(b).finish(),
          .inputs = {x, y},
          .outputs = {at::empty_like(x), at::zeros({columns})},
          .others = {{"aten", [=] { at::relu(x + y).sum(0, false, at::kFloat); }}}};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const auto& [rows, columns] :
         std::vector<std::array<int64_t, 2>>{{2048, 256}, {2048, 1024}, {1024, 3072}}) {
      cases.push_back(bias_gelu(rows, columns, false, type));
      cases.push_back(bias_gelu(rows, columns, true, type));
      cases.push_back(layer_norm(rows, columns, type));
      cases.push_back(softmax(rows, columns, type));
    }
    for (const auto& [rows, columns] :
         std::vector<std::array<int64_t, 2>>{{131072, 16}, {32768, 64}, {2048, 1024}}) {
      cases.push_back(add_relu_sums(rows, columns, type));
    }
    cases.push_back(softmax(16384, 128, type));
  }
  return cases;
}

// As many different kernels as a bf16 step of a transformer may have.
std::vector<LoopProgram> programs_of_a_step() {
  std::vector<LoopProgram> programs;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const bool by_tanh : {false, true}) {
      programs.push_back(bias_gelu(4, 256, by_tanh, type).program);
    }
    programs.push_back(layer_norm(4, 256, type).program);
    programs.push_back(softmax(4, 256, type).program);
    programs.push_back(add_relu_sums(4, 256, type).program);
    const Format format = type == at::kFloat ? Format::kFp32 : Format::kBf16;
    for (auto* gradient : {compile::gelu_gradient, compile::gelu_tanh_gradient,
                           compile::silu_gradient, compile::hardswish_gradient}) {
      LoopBuilder b({4, 256}, 1);
      const Value in = b.input(format, {256, 1}), shift = b.input(format, {0, 1});
      const Value dy = b.input(format, {256, 1});
      const Value dx = gradient(b, dy, b.apply(Op::kAdd, in, shift));
      b.output(dx, format, {256, 1});
      b.output(b.apply(Op::kColumnSum, dx), Format::kFp32, {0, 1});
      programs.push_back(std::move(b).finish());
    }
    LoopBuilder b({1024});
    const Value g = b.input(format, {1}), m = b.input(Format::kFp32, {1});
    const Value next = b.apply(Op::kAdd, b.apply(Op::kMultiply, m, 0.9), g);
    const Value p = b.input(Format::kFp32, {1});
    b.output(next, Format::kFp32, {1});
    b.output(b.apply(Op::kSubtract, p, b.apply(Op::kMultiply, next, b.input(Format::kFp32, {0}))),
             Format::kFp32, {1});
    programs.push_back(std::move(b).finish());
  }
  return programs;
}

void measure_compiling(nlohmann::json& results) {
  std::string root = (fs::temp_directory_path() / "gallop-bench-XXXXXX").string();
  if (mkdtemp(root.data()) == nullptr) return;
  const auto programs = programs_of_a_step();
  for (const char* what : {"compile", "from cache"}) {
    compile::KernelCompiler compiler({.cache_folder = fs::path(root) / "kernels"});
    const double begin = monotonic_seconds();
    const auto kernels = compile::LoopKernel::make(programs, compiler);
    const double made = monotonic_seconds();
    for (const auto& kernel : kernels) {
      if (!kernel->wait()) fmt::print("{}\n", kernel->fallback_reason());
    }
    const double seconds = monotonic_seconds() - begin;
    fmt::print("{}: {} kernels in {:.2f} s, of these {:.4f} s before they are in the background\n",
               what, programs.size(), seconds, made - begin);
    results.push_back({{"name", what}, {"kernels", programs.size()}, {"seconds", seconds}});
  }
  fs::remove_all(root);
}

double milliseconds(const std::function<void()>& run, int64_t repeats) {
  const double begin = monotonic_seconds();
  for (int64_t i = 0; i < repeats; ++i) run();
  return 1000 * (monotonic_seconds() - begin) / static_cast<double>(repeats);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(const Case& one, const compile::LoopKernel& kernel, int rounds,
             nlohmann::json& results) {
  std::vector<Form> forms = {{"generated", [&] { kernel.run(one.inputs, one.outputs); }}};
  forms.insert(forms.end(), one.others.begin(), one.others.end());
  std::vector<std::vector<double>> ms(forms.size());
  std::vector<int64_t> repeats;
  constexpr double kMilliseconds = 20;  // Duration of a form within a round.
  for (const Form& form : forms) {
    milliseconds(form.run, 3);
    repeats.push_back(
        std::clamp<int64_t>(std::llround(kMilliseconds / milliseconds(form.run, 2)), 1, 1000));
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < forms.size(); ++i) {
      ms[i].push_back(milliseconds(forms[i].run, repeats[i]));
    }
  }
  const double megabytes = static_cast<double>(kernel.bytes()) / 1e6;
  nlohmann::json result{{"name", one.name}};
  std::string line = fmt::format("{:32}", one.name);
  for (size_t i = 0; i < forms.size(); ++i) {
    const double time = median(ms[i]);
    line += fmt::format("  {:>9} {:7.3f} ms {:4.0f} GB/s", forms[i].name, time, megabytes / time);
    result[forms[i].name] = {{"ms", time}, {"gb_per_second", megabytes / time}};
  }
  fmt::print("{}\n", line);
  results.push_back(result);
}

}  // namespace

int main(int count, char** args) {
  retain_freed_memory();
  int rounds = 7;
  std::string json;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::string(args[i]) == "--rounds") rounds = std::atoi(args[i + 1]);
    if (std::string(args[i]) == "--json") json = args[i + 1];
  }
  nlohmann::json results = nlohmann::json::array();
  measure_compiling(results);
  const std::vector<Case> cases = all_cases();
  std::vector<LoopProgram> programs;
  for (const Case& one : cases) programs.push_back(one.program);
  compile::KernelCompiler compiler;
  const auto kernels = compile::LoopKernel::make(programs, compiler);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!kernels[i]->wait()) {
      fmt::print("{}: {}\n", cases[i].name, kernels[i]->fallback_reason());
      continue;
    }
    measure(cases[i], *kernels[i], rounds, results);
  }
  if (!json.empty()) std::ofstream(json) << results.dump(1) << "\n";
}

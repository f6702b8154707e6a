// Compares reductions fused into loops by the pass `fuse`, and GEMMs of one tensor merged by
// `merge-matmuls`, with LibTorch's separate operators, alternately in one process; both run as
// recorded graphs:
//   bench_fusion [--rounds N] [--json FILE] [--only TEXT]
// Reports quartiles of the time of a call, and the number of loops and nodes of the fused graph.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/threshold_backward.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/clock.h"
#include "gallop/base/heap.h"
#include "gallop/compile/executor.h"
#include "gallop/compile/loop_node.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"

namespace {

using namespace gallop;
using Tensors = std::vector<at::Tensor>;

struct Case {
  std::string name;
  compile::Function function;
  Tensors inputs;
  std::string pass = "fuse";
};

const char* name_of(at::ScalarType type) { return type == at::kFloat ? "fp32" : "bf16"; }

at::Tensor numbers(at::IntArrayRef sizes, at::ScalarType type) { return at::randn(sizes).to(type); }

void add_bias_gradients(std::vector<Case>& cases, at::ScalarType type) {
  for (const auto& [rows, columns] :
       std::vector<std::array<int64_t, 2>>{{2048, 1024}, {128, 256}, {64, 10}}) {
    cases.push_back({fmt::format("gelu-backward+bias-sum/{}/{}x{}", name_of(type), rows, columns),
                     [](const Tensors& x) -> Tensors {
                       const at::Tensor dx = at::gelu_backward(x[0], x[1]);
                       return {dx, dx.sum(0)};
                     },
                     {numbers({rows, columns}, type), numbers({rows, columns}, type)}});
  }
}

void add_norms(std::vector<Case>& cases, at::ScalarType type) {
  for (const auto& [rows, columns] :
       std::vector<std::array<int64_t, 2>>{{2048, 768}, {4096, 64}, {64, 4096}, {4096, 16}}) {
    cases.push_back({fmt::format("rms-norm/{}/{}x{}", name_of(type), rows, columns),
                     [](const Tensors& x) -> Tensors {
                       const at::Tensor mean = x[0].pow(2).mean(-1, /*keepdim=*/true);
                       return {x[0] * at::rsqrt(mean + 1e-5) * x[1]};
                     },
                     {numbers({rows, columns}, type), numbers({columns}, type)}});
  }
}

void add_softmaxes(std::vector<Case>& cases, at::ScalarType type) {
  for (const auto& [rows, columns] : std::vector<std::array<int64_t, 2>>{
           {2048, 1024}, {64, 50'000}, {16384, 64}, {16, 1024}, {4, 50'000}}) {
    const Tensors inputs = {numbers({rows, columns}, type)};
    const std::string form = fmt::format("{}/{}x{}", name_of(type), rows, columns);
    cases.push_back({"softmax-by-hand/" + form,
                     [](const Tensors& x) -> Tensors {
                       const at::Tensor e = at::exp(x[0] - x[0].amax(-1, true));
                       return {e / e.sum(-1, true)};
                     },
                     inputs});
    cases.push_back({"scale+softmax/" + form,
                     [](const Tensors& x) -> Tensors { return {at::softmax(x[0] * 0.125, -1)}; },
                     inputs});
    cases.push_back({"softmax/" + form,
                     [](const Tensors& x) -> Tensors { return {at::softmax(x[0], -1)}; }, inputs});
    cases.push_back({"log-softmax/" + form,
                     [](const Tensors& x) -> Tensors { return {at::log_softmax(x[0], -1)}; },
                     inputs});
    const Tensors gradients = {inputs[0], at::softmax(inputs[0], -1)};
    cases.push_back({"softmax-backward/" + form,
                     [type = type](const Tensors& x) -> Tensors {
                       return {at::_softmax_backward_data(x[0], x[1], -1, type)};
                     },
                     gradients});
    cases.push_back({"log-softmax-backward/" + form,
                     [type = type](const Tensors& x) -> Tensors {
                       return {at::_log_softmax_backward_data(x[0], x[1], -1, type)};
                     },
                     gradients});
  }
}

void add_losses(std::vector<Case>& cases, at::ScalarType type) {
  for (const int64_t count : {1'000'000, 20'000, 640}) {
    const Tensors inputs = {numbers({count / 10, 10}, type), numbers({count / 10, 10}, type)};
    const std::string form = fmt::format("{}/{}", name_of(type), count);
    cases.push_back({"mse-by-hand/" + form,
                     [](const Tensors& x) -> Tensors { return {(x[0] - x[1]).pow(2).mean()}; },
                     inputs});
    cases.push_back({"mse/" + form,
                     [](const Tensors& x) -> Tensors { return {at::mse_loss(x[0], x[1])}; },
                     inputs});
    cases.push_back(
        {"sum/" + form, [](const Tensors& x) -> Tensors { return {x[0].sum()}; }, inputs});
  }
}

void add_sums(std::vector<Case>& cases, at::ScalarType type) {
  const Tensors images = {
      numbers({128, 64, 32, 32}, type).contiguous(at::MemoryFormat::ChannelsLast),
      numbers({128, 64, 32, 32}, type).contiguous(at::MemoryFormat::ChannelsLast)};
  const Tensors planes = {images[0].contiguous(), images[1].contiguous()};
  for (const auto& [order, inputs] :
       std::vector<std::pair<std::string, Tensors>>{{"nhwc", images}, {"nchw", planes}}) {
    const std::string form = fmt::format("{}/{}/128x64x32x32", name_of(type), order);
    cases.push_back({"channel-sum/" + form,
                     [](const Tensors& x) -> Tensors {
                       return {x[0].sum({0, 2, 3})};
                     },
                     inputs});
    cases.push_back({"relu-backward+channel-sum/" + form,
                     [](const Tensors& x) -> Tensors {
                       const at::Tensor dx = at::threshold_backward(x[0], x[1], 0);
                       return {dx, dx.sum({0, 2, 3})};
                     },
                     inputs});
    cases.push_back({"silu+spatial-mean/" + form,
                     [](const Tensors& x) -> Tensors {
                       return {at::silu(x[0]).mean({2, 3}, true)};
                     },
                     inputs});
  }
  for (const auto& [rows, columns] : std::vector<std::array<int64_t, 2>>{{2048, 1024},
                                                                         {1'000'000, 16},
                                                                         {100'000, 10},
                                                                         {100'000, 3},
                                                                         {16, 100'000},
                                                                         {8, 1'000'000}}) {
    const Tensors inputs = {numbers({rows, columns}, type)};
    const std::string form = fmt::format("{}/{}x{}", name_of(type), rows, columns);
    for (const int64_t dim : {0, 1}) {
      cases.push_back({fmt::format("sum({})/{}", dim, form),
                       [dim](const Tensors& x) -> Tensors { return {x[0].sum(dim)}; }, inputs});
      cases.push_back({fmt::format("amax({})/{}", dim, form),
                       [dim](const Tensors& x) -> Tensors { return {x[0].amax(dim)}; }, inputs});
      cases.push_back({fmt::format("square+sum({})/{}", dim, form),
                       [dim](const Tensors& x) -> Tensors { return {(x[0] * x[0]).sum(dim)}; },
                       inputs});
    }
  }
}

// Forward and backward of several layers without bias on one tensor, with weights in fp32.
void add_groups(std::vector<Case>& cases, at::ScalarType type) {
  struct Group {
    int64_t rows, inputs, outputs, layers;
  };
  for (const Group& group :
       {Group{2048, 256, 256, 3}, Group{2048, 256, 688, 2}, Group{8320, 192, 192, 3},
        Group{256, 512, 512, 3}, Group{128, 128, 128, 3}, Group{64, 128, 128, 3}}) {
    Tensors weights;
    for (int64_t i = 0; i < group.layers; ++i) {
      weights.push_back(at::randn({group.outputs, group.inputs}) / 16);
    }
    cases.push_back({fmt::format("{}-layers/{}/{}x{}x{}", group.layers, name_of(type), group.rows,
                                 group.inputs, group.outputs),
                     [=](const Tensors& x) -> Tensors {
                       Tensors narrow, dy, results;
                       for (const at::Tensor& weight : weights) {
                         narrow.push_back(weight.to(type));
                         dy.push_back(at::relu(at::mm(x[0], narrow.back().t())));
                       }
                       at::Tensor dx;
                       for (size_t i = 0; i < dy.size(); ++i) {
                         const at::Tensor part = at::mm(dy[i], narrow[i]);
                         dx = dx.defined() ? dx + part : part;
                         results.push_back(at::mm(dy[i].t(), x[0]).to(at::kFloat) * 0.5);
                       }
                       results.push_back(dx);
                       return results;
                     },
                     {numbers({group.rows, group.inputs}, type)},
                     "merge-matmuls"});
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    add_bias_gradients(cases, type);
    add_norms(cases, type);
    add_softmaxes(cases, type);
    add_losses(cases, type);
    add_sums(cases, type);
    add_groups(cases, type);
  }
  return cases;
}

compile::Graph graph_of(const Case& one, bool fused, compile::KernelCompiler& compiler) {
  compile::Graph graph = compile::record(one.function, one.inputs).graph;
  std::vector<std::string> off;
  for (const compile::Pass& pass : compile::all_passes()) {
    const bool wanted = pass.keeps_bits() || (fused && pass.name == one.pass);
    if (!wanted) off.emplace_back(pass.name);
  }
  compile::PassContext context{.compiler = compiler};
  compile::run_passes(graph, off, context);
  for (const std::string& fallbacks : context.fallbacks)
    fmt::print("{}: {}\n", one.name, fallbacks);
  return graph;
}

double microseconds(compile::Executor& executor, const Tensors& inputs, int64_t repeats) {
  const double begin = monotonic_seconds();
  for (int64_t i = 0; i < repeats; ++i) executor.run(inputs);
  return 1e6 * (monotonic_seconds() - begin) / static_cast<double>(repeats);
}

std::array<double, 3> quartiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.25), at(0.5), at(0.75)};
}

void measure(const Case& one, int rounds, compile::KernelCompiler& compiler,
             nlohmann::json& results) {
  const compile::Graph graph = graph_of(one, true, compiler);
  const auto loops = std::count_if(graph.nodes.begin(), graph.nodes.end(), compile::is_loop);
  compile::Executor plain(graph_of(one, false, compiler)), fused(graph);
  std::array<compile::Executor*, 2> forms = {&plain, &fused};
  std::array<std::vector<double>, 2> times;
  std::vector<double> ratios;
  constexpr double kMicroseconds = 5000;  // Duration of a form within a round.
  for (auto* form : forms) microseconds(*form, one.inputs, 3);
  const auto repeats = std::clamp<int64_t>(
      std::llround(kMicroseconds / microseconds(plain, one.inputs, 3)), 1, 2000);
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < forms.size(); ++i) {
      times[i].push_back(microseconds(*forms[i], one.inputs, repeats));
    }
    ratios.push_back(times[0].back() / times[1].back());
  }
  const auto a = quartiles(times[0]), b = quartiles(times[1]), c = quartiles(ratios);
  fmt::print(
      "{:52} {:9.1f} ({:.1f} to {:.1f}) us  {:9.1f} ({:.1f} to {:.1f}) us  x{:.2f} "
      "({:.2f} to {:.2f})  {} loops in {} nodes\n",
      one.name, a[1], a[0], a[2], b[1], b[0], b[2], c[1], c[0], c[2], loops, graph.nodes.size());
  results.push_back({{"name", one.name},
                     {"operators_us", a},
                     {"fused_us", b},
                     {"ratio", c},
                     {"loops", loops},
                     {"nodes", graph.nodes.size()}});
}

}  // namespace

int main(int count, char** args) {
  retain_freed_memory();
  int rounds = 11;
  std::string json, only;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = args[i];
    if (name == "--rounds") rounds = std::atoi(args[i + 1]);
    if (name == "--json") json = args[i + 1];
    if (name == "--only") only = args[i + 1];
  }
  nlohmann::json results = nlohmann::json::array();
  compile::KernelCompiler compiler;
  for (const Case& one : all_cases()) {
    if (one.name.find(only) == std::string::npos) continue;
    measure(one, rounds, compiler, results);
  }
  if (!json.empty()) std::ofstream(json) << results.dump(1) << "\n";
}

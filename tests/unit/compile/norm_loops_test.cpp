#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "gallop/compile/executor.h"
#include "gallop/compile/loop_node.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/recorder.h"
#include "unit/compile/emulated_graph.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

void set_device(Graph& graph, c10::Device device) {
  for (Buffer& buffer : graph.buffers) buffer.device = device;
}

// As a GPU's graph is after the pass, with all tensors on the CPU again.
Graph split(const Function& function, const Tensors& inputs) {
  Graph graph = record(function, inputs).graph;
  set_device(graph, {c10::kCUDA, 0});
  passes::split_norms(graph);
  set_device(graph, c10::kCPU);
  return graph;
}

int64_t count(const Graph& graph, const std::string& op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return name_of(node.op).starts_with(op); });
}

// Relative to the largest element.
double error_of(const at::Tensor& found, const at::Tensor& wanted) {
  const at::Tensor exact = wanted.to(at::kDouble);
  const double size = exact.abs().max().item<double>();
  return (found.to(at::kDouble) - exact).abs().max().item<double>() / std::max(size, 1e-30);
}

// Both ways that a GPU's graph can be tried here: loops for the CPU of the whole graph, and the
// GPU's own text for as many neighbors as make one.
void expect_near(const Function& function, const Tensors& inputs, const Tensors& wanted,
                 double tolerance, int64_t most_loops, int64_t others) {
  KernelCompiler compiler({.timeout_seconds = 3600});
  Graph graph = split(function, inputs);
  EXPECT_EQ(count(graph, "aten::native_"), 0);
  const EmulatedRun emulated = run_emulated(graph, inputs, compiler);
  // Where neighbors are not what belongs together, a factor for the channels is left alone.
  EXPECT_LE(emulated.loops, most_loops);
  EXPECT_LE(emulated.others, others + 2);
  ASSERT_EQ(emulated.outputs.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(emulated.outputs[i].sizes(), wanted[i].sizes());
    EXPECT_LE(error_of(emulated.outputs[i], wanted[i]), tolerance) << "emulated output " << i;
  }
  PassContext context{.compiler = compiler};
  run_passes(graph, {"activations"}, context);  // As those are for the CPU.
  EXPECT_LE(std::count_if(graph.nodes.begin(), graph.nodes.end(), is_loop), most_loops);
  EXPECT_LE(static_cast<int64_t>(graph.nodes.size()), most_loops + others);
  const Tensors fused = Executor(graph).run(inputs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LE(error_of(fused[i], wanted[i]), tolerance) << "output " << i;
  }
}

struct BatchNormCase {
  std::vector<int64_t> sizes;
  bool channels_last;
  at::ScalarType type;
  double offset;  // Offset of the mean, in deviations.
};

void PrintTo(const BatchNormCase& tested, std::ostream* out) {
  *out << fmt::format("{} {}{}, mean {}", fmt::join(tested.sizes, " x "),
                      c10::toString(tested.type), tested.channels_last ? " channels-last" : "",
                      tested.offset);
}

class BatchNormLoops : public testing::TestWithParam<BatchNormCase> {};

TEST_P(BatchNormLoops, MatchLibTorch) {
  const BatchNormCase& c = GetParam();
  const int64_t channels = c.sizes[1];
  const auto made = [&](double offset) {
    const at::Tensor x = (at::randn(c.sizes) + offset).to(c.type);
    return c.channels_last ? x.contiguous(at::MemoryFormat::ChannelsLast) : x;
  };
  const at::Tensor running_mean = at::zeros({channels}), running_var = at::ones({channels});
  // Norm, residual, ReLU and their gradients.
  const auto step = [](const Tensors& in, const at::Tensor& mean, const at::Tensor& var) {
    const auto [y, saved_mean, inverse] =
        at::native_batch_norm(in[0], in[3], in[4], mean, var, true, 0.1, 1e-5);
    const at::Tensor z = at::relu(y + in[1]);
    const at::Tensor dz = at::threshold_backward(in[2], z, 0);
    const auto [dx, dweight, dbias] = at::native_batch_norm_backward(
        dz, in[0], in[3], mean, var, saved_mean, inverse, true, 1e-5, {true, true, true});
    return Tensors{z, dz, dx, dweight, dbias};
  };
  const Tensors inputs = {made(c.offset), made(0), made(0), at::rand({channels}) + 0.5,
                          at::randn({channels})};
  Tensors exact;
  for (const at::Tensor& input : inputs) exact.push_back(input.to(at::kDouble));
  const at::Tensor exact_mean = running_mean.to(at::kDouble),
                   exact_var = running_var.to(at::kDouble);
  Tensors wanted = step(exact, exact_mean, exact_var);
  // ReLU decides by rounded numbers: the gradient is that of what it let through.
  const Tensors rounded = step(inputs, running_mean.clone(), running_var.clone());
  if (c.type == at::kBFloat16) {
    const auto [dx, dweight, dbias] = at::native_batch_norm_backward(
        rounded[1].to(at::kDouble), exact[0], exact[3], exact_mean, exact_var,
        exact[0].transpose(0, 1).flatten(1).mean(1),
        at::rsqrt(exact[0].transpose(0, 1).flatten(1).var(1, false) + 1e-5), true, 1e-5,
        {true, true, true});
    wanted = {rounded[0], rounded[1], dx, dweight, dbias};
  }
  const double tolerance = c.type == at::kFloat ? 3e-6 * (1 + c.offset) : 0x1p-6;
  const Function function = [&](const Tensors& in) -> Tensors {
    return step(in, running_mean, running_var);
  };
  // Sums, the norm, gradients' sums and dx; contiguous images have one loop each way.
  expect_near(function, inputs, wanted, tolerance, c.channels_last ? 4 : 2, 1);
  // Twice, as it ran in both forms.
  at::Tensor mean = at::zeros({channels}, at::kDouble), var = at::ones({channels}, at::kDouble);
  for (int i = 0; i < 2; ++i) step(exact, mean, var);
  EXPECT_LE(error_of(running_mean, mean), 1e-5);
  EXPECT_LE(error_of(running_var, var), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(, BatchNormLoops,
                         testing::Values(BatchNormCase{{6, 16, 9, 7}, true, at::kFloat, 0},
                                         BatchNormCase{{5, 24, 8, 8}, false, at::kFloat, 0},
                                         BatchNormCase{{4, 37, 5, 5}, true, at::kFloat, 1000},
                                         BatchNormCase{{8, 32, 6, 6}, true, at::kBFloat16, 1},
                                         BatchNormCase{{8, 19, 3, 8}, false, at::kBFloat16, 0}));

TEST(NormLoops, CountTheBatchesOfAllNormsTogether) {
  Tensors counters;
  for (int i = 0; i < 3; ++i) counters.push_back(at::zeros({}, at::kLong));
  const Function function = [&](const Tensors& in) -> Tensors {
    for (at::Tensor& counter : counters) counter.add_(1);
    return {in[0] + counters[2]};  // Read before the end.
  };
  const Tensors inputs = {at::randn({4})};
  const Graph graph = split(function, inputs);
  EXPECT_EQ(count(graph, "aten::_foreach_add_"), 1);
  EXPECT_EQ(count(graph, "aten::add_"), 1);
  for (at::Tensor& counter : counters) counter.zero_();
  Executor(graph).run(inputs);
  for (const at::Tensor& counter : counters) EXPECT_EQ(counter.item<int64_t>(), 1);
}

TEST(NormLoops, UpdateTheStatisticsOfAllNormsTogether) {
  const at::Tensor weight = at::ones({16}), bias = at::zeros({16});
  Tensors statistics;
  for (int i = 0; i < 6; ++i) statistics.push_back(at::zeros({16}));
  const Function function = [&](const Tensors& in) -> Tensors {
    at::Tensor x = in[0];
    for (size_t i = 0; i < 6; i += 2) {
      x = std::get<0>(at::native_batch_norm(x, weight, bias, statistics[i], statistics[i + 1], true,
                                            0.1, 1e-5)) +
          1;
    }
    return {x};
  };
  const Tensors inputs = {at::randn({4, 16, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast)};
  const Graph graph = split(function, inputs);
  EXPECT_EQ(count(graph, "aten::_foreach_lerp_"), 1);
  Executor(graph).run(inputs);
  Tensors found;
  for (at::Tensor& statistic : statistics) {
    found.push_back(statistic.clone());
    statistic.zero_();
  }
  function(inputs);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(error_of(found[i], statistics[i]), 1e-5);
}

// cuDNN's forms have other arguments; no CPU computes them, but their graph is the same.
TEST(NormLoops, SupportCudnnOperators) {
  const at::Tensor weight = at::ones({16}), bias = at::zeros({16}), mean = at::zeros({16}),
                   var = at::ones({16});
  const Function function = [&](const Tensors& in) -> Tensors {
    const auto [y, saved, inverse] =
        at::native_batch_norm(in[0], weight, bias, mean, var, true, 0.1, 1e-5);
    const auto [dx, dweight, dbias] = at::native_batch_norm_backward(
        in[1], in[0], weight, mean, var, saved, inverse, true, 1e-5, {true, true, true});
    return {y, dx, dweight, dbias};
  };
  const Tensors inputs = {at::randn({4, 16, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast),
                          at::randn({4, 16, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast)};
  Graph graph = record(function, inputs).graph;
  ASSERT_EQ(graph.nodes.size(), 2U);
  const auto op = [](const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  };
  Node &norm = graph.nodes[0], &gradient = graph.nodes[1];
  const ViewId reserve = graph.intern({.buffer = static_cast<BufferId>(graph.buffers.size()),
                                       .offset = 0,
                                       .sizes = {64},
                                       .strides = {1},
                                       .dtype = at::kByte});
  graph.buffers.push_back({.bytes = 64});
  norm.op = op("aten::cudnn_batch_norm");
  norm.results.push_back(Operand::of(reserve));
  gradient.op = op("aten::cudnn_batch_norm_backward");
  auto& given = gradient.arguments;
  std::swap(given[0], given[1]);
  given = {given[0], given[1], given[2],
           given[3], given[4], given[5],
           given[6], given[8], Operand::of(reserve)};
  set_device(graph, {c10::kCUDA, 0});
  passes::split_norms(graph);
  EXPECT_EQ(count(graph, "aten::cudnn"), 0);
  set_device(graph, c10::kCPU);
  const Tensors found = Executor(graph).run(inputs), wanted = function(inputs);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(error_of(found[i], wanted[i]), 3e-6) << i;
}

// Without a loop LibTorch's fused operator is faster.
TEST(NormLoops, KeepOperatorsWithoutALoop) {
  const auto left = [](std::vector<int64_t> sizes, at::MemoryFormat format, bool training) {
    const at::Tensor row = at::ones({sizes[1]}), mean = row.clone(), var = row.clone();
    const Function function = [=](const Tensors& in) -> Tensors {
      return {std::get<0>(at::native_batch_norm(in[0], row, row, mean, var, training, 0.1, 1e-5))};
    };
    return count(split(function, {at::randn(sizes).contiguous(format)}),
                 "aten::native_batch_norm") == 1;
  };
  const auto nchw = at::MemoryFormat::Contiguous, nhwc = at::MemoryFormat::ChannelsLast;
  EXPECT_TRUE(left({4, 3, 8, 8}, nhwc, true));
  EXPECT_TRUE(left({4, 8, 8, 8}, nchw, true));
  EXPECT_TRUE(left({4, 32, 4, 4}, nchw, true));
  EXPECT_TRUE(left({4, 32, 8, 8}, nchw, false));
  EXPECT_FALSE(left({4, 32, 8, 8}, nchw, true));
  EXPECT_FALSE(left({4, 8, 8, 8}, nhwc, true));
}

class LayerNormLoops : public testing::TestWithParam<at::ScalarType> {};

// The sum before it and the cast behind it are of the same loop.
TEST_P(LayerNormLoops, MatchLibTorch) {
  constexpr int64_t kWidth = 72;
  const Function function = [](const Tensors& in) -> Tensors {
    const at::Tensor sum = in[0] + in[1];
    const auto [y, mean, inverse] = at::native_layer_norm(sum, {kWidth}, in[2], in[3], 1e-5);
    const auto [dx, dweight, dbias] = at::native_layer_norm_backward(
        in[4], sum, {kWidth}, mean, inverse, in[2], in[3], {true, true, true});
    return {y, dx + in[0], dweight, dbias};
  };
  Tensors inputs = {at::randn({6, 40, kWidth}) + 3, at::randn({6, 40, kWidth}),
                    at::rand({kWidth}) + 0.5, at::randn({kWidth}), at::randn({6, 40, kWidth})};
  for (const size_t i : {0, 1, 4}) inputs[i] = inputs[i].to(GetParam());
  Tensors exact;
  for (const at::Tensor& input : inputs) exact.push_back(input.to(at::kDouble));
  const double tolerance = GetParam() == at::kFloat ? 3e-6 : 0x1p-6;
  expect_near(function, inputs, function(exact), tolerance, 2, 0);
}

INSTANTIATE_TEST_SUITE_P(, LayerNormLoops, testing::Values(at::kFloat, at::kBFloat16));

// LibTorch has the fused form for GPUs alone: its nodes are put into the graph by hand.
TEST(NormLoops, RmsNorm) {
  constexpr int64_t kWidth = 96;
  const Function function = [](const Tensors& in) -> Tensors {
    const auto [y, mean, inverse] = at::native_layer_norm(in[0], {kWidth}, in[1], {}, 1e-5);
    const auto [dx, dweight, dbias] = at::native_layer_norm_backward(
        in[2], in[0], {kWidth}, mean, inverse, in[1], {}, {true, true, false});
    return {y, dx, dweight};
  };
  const Tensors inputs = {at::randn({50, kWidth}) + 1, at::rand({kWidth}) + 0.5,
                          at::randn({50, kWidth})};
  Graph graph = record(function, inputs).graph;
  ASSERT_EQ(graph.nodes.size(), 2U);
  const auto op = [](const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  };
  Node &norm = graph.nodes[0], &gradient = graph.nodes[1];
  norm.op = op("aten::_fused_rms_norm");
  norm.arguments.erase(norm.arguments.begin() + 3);
  norm.results.erase(norm.results.begin() + 1);
  gradient.op = op("aten::_fused_rms_norm_backward");
  gradient.arguments.erase(gradient.arguments.begin() + 6);
  gradient.arguments.erase(gradient.arguments.begin() + 3);
  gradient.results.pop_back();
  set_device(graph, {c10::kCUDA, 0});
  passes::split_norms(graph);
  EXPECT_EQ(count(graph, "aten::_fused_rms"), 0);
  set_device(graph, c10::kCPU);
  const Tensors found = Executor(graph).run(inputs);
  Tensors exact;
  for (const at::Tensor& input : inputs) {
    exact.push_back(input.to(at::kDouble).set_requires_grad(exact.size() < 2));
  }
  const at::AutoGradMode with_gradients(true);
  const at::Tensor y = exact[0] * at::rsqrt((exact[0] * exact[0]).mean(-1, true) + 1e-5) * exact[1];
  y.backward(exact[2]);
  EXPECT_LE(error_of(found[0], y.detach()), 3e-6);
  EXPECT_LE(error_of(found[1], exact[0].grad()), 3e-6);
  EXPECT_LE(error_of(found[2], exact[1].grad()), 3e-6);
}

}  // namespace
}  // namespace gallop::compile

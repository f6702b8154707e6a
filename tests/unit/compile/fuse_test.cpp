#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include "gallop/compile/passes.h"
#include "unit/compile/fused_function.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(Fuse, AChainIsOneLoopForEveryDataType) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const Function function = [](const Tensors& x) -> Tensors {
      const at::Tensor gate = at::sigmoid(x[0] * 2 + x[1]);
      return {at::tanh(gate * x[0]) - 0.5, gate};
    };
    const Tensors inputs = {at::randn({7, 33}).to(type), at::randn({33}).to(type)};
    const FusedFunction fused(function, inputs);
    EXPECT_EQ(fused.graph.nodes.size(), 1U);
    EXPECT_EQ(fused.loops(), 1);
    const Tensors got = fused.run(inputs), wanted = function(inputs);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(got[i].scalar_type(), type);
      EXPECT_TRUE(at::allclose(got[i], wanted[i], type == at::kBFloat16 ? 1e-2 : 1e-5, 1e-6));
    }
  }
}

TEST(Fuse, ExactOperatorsAreBitIdentical) {
  const Function function = [](const Tensors& x) -> Tensors {
    const at::Tensor sum = x[0] + x[1] * 0.1;
    return {at::where(sum > 0.3, sum / x[1], -sum).to(at::kFloat) * 3};
  };
  const Tensors inputs = {at::randn({5, 17}).to(at::kBFloat16),
                          at::randn({5, 17}).to(at::kBFloat16)};
  const FusedFunction fused(function, inputs);
  EXPECT_EQ(fused.loops(), 1);
  EXPECT_TRUE(at::equal(fused.run(inputs)[0], function(inputs)[0]));
}

TEST(Fuse, SupportsScalarsAndMemoryFormats) {
  const Function function = [](const Tensors& x) -> Tensors {
    return {x[0].t() * x[1] + 1, (x[2] + x[1]) * x[1]};
  };
  const Tensors inputs = {at::randn({6, 9}), at::randn({}),
                          at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast)};
  const FusedFunction fused(function, inputs);
  EXPECT_EQ(fused.loops(), 2);
  const Tensors got = fused.run(inputs), wanted = function(inputs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i], wanted[i]));
    EXPECT_EQ(got[i].strides(), wanted[i].strides());
  }
}

TEST(Fuse, DoesNotFuseAcrossWritesAndReads) {
  const at::Tensor state = at::ones({4});
  const Function function = [state](const Tensors& x) -> Tensors {
    const at::Tensor a = x[0] * state;
    state.add_(1);
    const at::Tensor b = a.sum() + a;  // The sum is needed before the addition.
    return {b * state, a};
  };
  const Tensors inputs = {at::randn({4})};
  const FusedFunction fused(function, inputs);
  const Tensors wanted = record(function, inputs).results;
  const Tensors got = fused.run(inputs);
  EXPECT_TRUE(at::equal(got[0], wanted[0]));
  EXPECT_TRUE(at::equal(got[1], wanted[1]));
  EXPECT_EQ(state.sum().item<float>(), 8);
}

TEST(Fuse, WithoutACompilerKeepsTheGraphAndReportsTheReason) {
  const Function function = [](const Tensors& x) -> Tensors { return {at::exp(x[0] * 2.25) + 1}; };
  const Tensors inputs = {at::randn({3})};
  const FusedFunction fused(function, inputs, "/nowhere/c++");
  EXPECT_EQ(fused.loops(), 0);
  EXPECT_TRUE(at::equal(fused.run(inputs)[0], function(inputs)[0]));
  ASSERT_EQ(fused.context.fallbacks.size(), 1U);
  EXPECT_NE(fused.context.fallbacks[0].find("1 of 1 chains of operators are not fused: "),
            std::string::npos);
  EXPECT_NE(fused.context.fallbacks[0].find("/nowhere/c++"), std::string::npos);
}

// A step with everything that CPU kernels replace, as if it were on a GPU.
TEST(Passes, CpuKernelsAreNotInsertedOnGpus) {
  const Function function = [](const Tensors& x) -> Tensors {
    const at::Tensor rows = at::layer_norm(x[0] + x[1], {24}, x[2], x[3]);
    const at::Tensor active = at::gelu(rows);
    return {at::nll_loss(at::log_softmax(active, -1), x[4], {}, at::Reduction::Sum),
            at::tanh(active * 2) + 1};
  };
  const Tensors inputs = {at::randn({6, 24}), at::randn({6, 24}), at::ones({24}), at::ones({24}),
                          at::ones({6}, at::kLong)};
  const auto kernels_of = [&](c10::Device device, std::string& fallback_reason) {
    KernelCompiler compiler({.cuda_driver = "libcuda-missing.so"});
    PassContext context{.compiler = compiler};
    Graph graph = record(function, inputs).graph;
    for (Buffer& buffer : graph.buffers) buffer.device = device;
    run_passes(graph, {}, context);
    fallback_reason = context.fallbacks.empty() ? "" : context.fallbacks[0];
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [](const Node& node) { return name_of(node.op).starts_with("gallop::"); });
  };
  std::string fallback_reason;
  EXPECT_GE(kernels_of(c10::kCPU, fallback_reason), 3);
  EXPECT_EQ(fallback_reason, "");
  EXPECT_EQ(kernels_of({c10::kCUDA, 0}, fallback_reason), 0);
  EXPECT_NE(fallback_reason.find(
                "chains of operators are not fused: the step falls back to unfused operators: "
                "the GPU's driver cannot be loaded: libcuda-missing.so"),
            std::string::npos)
      << fallback_reason;
}

TEST(Passes, RejectUnknownNames) {
  KernelCompiler compiler;
  PassContext context{.compiler = compiler};
  Graph graph;
  EXPECT_THROW(run_passes(graph, {"fuze"}, context), std::exception);
}

}  // namespace
}  // namespace gallop::compile

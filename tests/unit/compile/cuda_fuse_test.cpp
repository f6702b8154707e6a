#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/passes/fused_loop.h"
#include "gallop/compile/passes/pointwise.h"
#include "gallop/compile/recorder.h"
#include "unit/compile/cuda_emulation.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

/// A function's graph as if its tensors were on a GPU, after the pass `fuse`.
Graph graph_for_gpu(const Function& function, const Tensors& inputs, KernelCompiler& compiler) {
  Graph graph = record(function, inputs).graph;
  for (Buffer& buffer : graph.buffers) buffer.device = {c10::kCUDA, 0};
  PassContext context{.compiler = compiler};
  run_passes(graph, {"fuse", "rematerialize", "schedule"}, context);
  return graph;
}

std::optional<passes::FusedLoop> loop_of(const Graph& graph) {
  passes::Group all;
  for (size_t i = 0; i < graph.nodes.size(); ++i) all.insert(static_cast<int64_t>(i));
  return passes::fused_loop(graph, uses_of(graph), all);
}

/// The results of a function of fresh tensors as one loop for GPUs, run on the CPU.
Tensors run_as_one_loop(const Function& function, const Tensors& inputs) {
  KernelCompiler compiler({.timeout_seconds = 3600});
  const Graph graph = graph_for_gpu(function, inputs, compiler);
  const auto loop = loop_of(graph);
  if (!loop) {
    ADD_FAILURE() << "not one loop";
    return inputs;
  }
  const CudaPlan plan = cuda_plan(loop->program, /*busy_threads=*/1);
  const auto kernel =
      compiler.submit(emulated_prefix(), std::vector{emulated_source(plan)})[0].get();
  EXPECT_NE(kernel.function, nullptr) << kernel.fallback_reason;
  std::vector<const void*> in;
  std::vector<void*> out;
  Tensors results;
  for (const ViewId input : loop->inputs) {
    const View& view = graph.views[input];
    const auto& given = inputs[static_cast<size_t>(graph.buffer_of(input).input)];
    in.push_back(static_cast<const char*>(given.const_data_ptr()) +
                 view.offset * static_cast<int64_t>(given.element_size()));
  }
  for (const ViewId result : loop->results) {
    const View& view = graph.views[result];
    results.push_back(at::empty_strided(view.sizes, view.strides, view.dtype));
  }
  for (const LoopOutput& output : loop->outputs) {
    const at::Tensor& whole = results[output.result];
    out.push_back(static_cast<char*>(whole.data_ptr()) +
                  output.view.offset * static_cast<int64_t>(whole.element_size()));
  }
  EmulatedLoop(plan, kernel)(in, out, /*aligned=*/true, /*reversed=*/false);
  return results;
}

TEST(CudaFuse, Fp16IsRoundedWhereLibTorchRounds) {
  const Function function = [](const Tensors& x) -> Tensors {
    const at::Tensor sum = x[0] + x[1] * 0.1;
    return {at::where(sum > 0.3, sum / x[1], -sum).to(at::kFloat) * 3};
  };
  const Tensors inputs = {at::randn({50, 170}).to(at::kHalf), at::randn({50, 170}).to(at::kHalf)};
  EXPECT_TRUE(at::equal(run_as_one_loop(function, inputs)[0], function(inputs)[0]));
}

TEST(CudaFuse, Fp16OverflowsAndUnderflowsAsInLibTorch) {
  const Function function = [](const Tensors& x) -> Tensors {
    return {(x[0] * x[0] * 3e-3 + x[1]) * 2};
  };
  const Tensors inputs = {(at::randn({4000}) * 300).to(at::kHalf),
                          (at::randn({4000}) * 0x1p-20).to(at::kHalf)};
  const at::Tensor wanted = function(inputs)[0];
  EXPECT_GT(wanted.isinf().sum().item<int64_t>(), 0);
  EXPECT_TRUE(at::equal(run_as_one_loop(function, inputs)[0], wanted));
}

// As LibTorch's comparisons on a GPU, which round the number to the tensor's format.
TEST(CudaFuse, ComparesWithARoundedNumber) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const Function function = [](const Tensors& x) -> Tensors {
      return {at::where(x[0] == 0.1, x[0] * 2, x[0] * 3) + at::where(x[0] < 0.3, x[0], -x[0])};
    };
    const Tensors inputs = {at::full({40}, 0.1).to(type)};
    const at::Tensor found = run_as_one_loop(function, inputs)[0];
    EXPECT_TRUE(at::equal(found, inputs[0] * 2 + inputs[0]));
    EXPECT_TRUE(at::equal(found, function(inputs)[0]));
  }
}

TEST(CudaFuse, PowersAreProductsAsInLibTorch) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensors inputs = {at::randn({40, 100}).to(type)};
    const std::vector<double> exponents = {-2.0, -1.0, -0.5, 0.5, 2.0, 3.0};
    const Function function = [&](const Tensors& x) {
      Tensors powers;
      for (const double exponent : exponents) powers.push_back(x[0].abs().pow(exponent));
      return powers;
    };
    const Tensors found = run_as_one_loop(function, inputs), wanted = function(inputs);
    for (size_t i = 0; i < exponents.size(); ++i) {
      // LibTorch's roots on a CPU may be off by an ulp.
      const bool is_root = std::abs(exponents[i]) == 0.5;
      const double ulp = type == at::kFloat ? 0x1p-23 : 0x1p-7;
      EXPECT_TRUE(is_root ? at::allclose(found[i], wanted[i], ulp, 0)
                          : at::equal(found[i], wanted[i]))
          << c10::toString(type) << " to the power of " << exponents[i];
    }
  }
}

TEST(CudaFuse, JoinsAreWrittenByTheLoopOfTheirParts) {
  struct Case {
    const char* name;
    Function function;
  };
  const std::vector<Case> cases = {
      {"halves, one negated",
       [](const Tensors& x) -> Tensors {
         return {at::cat({-x[0].narrow(2, 8, 8), x[0].narrow(2, 0, 8)}, -1)};
       }},
      {"channels",
       [](const Tensors& x) -> Tensors {
         return {at::cat({x[0] * 2, x[1]}, 1)};
       }},
      {"a stack between dimensions",
       [](const Tensors& x) -> Tensors {
         return {at::stack({x[0], x[1], x[0] + x[1]}, 2)};
       }},
      {"a part that is also a result",
       [](const Tensors& x) -> Tensors {
         const at::Tensor sum = x[0] + x[1];
         return {sum, at::stack({x[0], sum}, 0)};
       }},
  };
  const Tensors inputs = {at::randn({6, 5, 16}).to(at::kBFloat16),
                          at::randn({6, 5, 16}).to(at::kBFloat16)};
  for (const Case& c : cases) {
    const Tensors found = run_as_one_loop(c.function, inputs), wanted = c.function(inputs);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const bool same = std::any_of(found.begin(), found.end(), [&](const at::Tensor& result) {
        return result.sizes() == wanted[i].sizes() && at::equal(result, wanted[i]);
      });
      EXPECT_TRUE(same) << c.name << ", result " << i;
    }
  }
}

// What reads a join belongs to another loop, and parts of different sizes to none.
TEST(CudaFuse, JoinsEndTheirLoop) {
  KernelCompiler compiler({.timeout_seconds = 3600});
  const Tensors inputs = {at::randn({6, 5, 16}), at::randn({6, 5, 8})};
  const auto nodes_after_fuse = [&](const Function& function) {
    Graph graph = graph_for_gpu(function, inputs, compiler);
    for (const auto& node : graph.nodes) {
      if (name_of(node.op) == "aten::cat") return passes::is_join(graph, node);
    }
    return false;
  };
  EXPECT_TRUE(nodes_after_fuse([](const Tensors& x) -> Tensors {
    return {at::cat({x[0], x[0]}, 0) * 2};
  }));
  EXPECT_FALSE(nodes_after_fuse([](const Tensors& x) -> Tensors {
    return {at::cat({x[0], x[1]}, 2)};
  }));
  const Graph graph = graph_for_gpu(
      [](const Tensors& x) -> Tensors {
        return {at::cat({x[0], x[0]}, 0) * 2};
      },
      inputs, compiler);
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_FALSE(loop_of(graph).has_value());
}

TEST(CudaFuse, ReductionsOfFp16AreTakenInFp32) {
  const Function rows = [](const Tensors& x) -> Tensors {
    return {at::log_softmax(x[0] * 4, -1), (x[0] * 100).sum(-1)};
  };
  const Tensors inputs = {at::randn({64, 600}).to(at::kHalf)};
  const Tensors found = run_as_one_loop(rows, inputs), wanted = rows({inputs[0].to(at::kFloat)});
  ASSERT_EQ(found.size(), 2U);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].scalar_type(), at::kHalf);
    // A rounding of the product each, and one of the result: those of a sum in fp16 would show.
    EXPECT_TRUE(at::allclose(found[i].to(at::kFloat), wanted[i], 2e-3, i == 0 ? 1e-2 : 3)) << i;
  }
  const Function columns = [](const Tensors& x) -> Tensors { return {(x[0] + 1).sum(0)}; };
  EXPECT_TRUE(at::allclose(run_as_one_loop(columns, inputs)[0].to(at::kFloat),
                           columns({inputs[0].to(at::kFloat)})[0], 2e-3, 5e-2));
}

TEST(CudaFuse, Fp16IsNotFusedOnTheCpu) {
  KernelCompiler compiler({.timeout_seconds = 3600});
  const Tensors inputs = {at::randn({64, 600}).to(at::kHalf)};
  for (const Function& function :
       {Function([](const Tensors& x) -> Tensors { return {(x[0] + 1) * x[0]}; }),
        Function([](const Tensors& x) -> Tensors { return {(x[0] + 1).sum(-1)}; })}) {
    Graph graph = graph_for_gpu(function, inputs, compiler);
    EXPECT_TRUE(loop_of(graph).has_value());
    PassContext context{.compiler = compiler};
    for (Buffer& buffer : graph.buffers) buffer.device = c10::kCPU;
    run_passes(graph, {}, context);
    EXPECT_EQ(graph.nodes.size(), 2U);
  }
}

// bf16 and fp16 meet in fp32, which is left to LibTorch; and so are powers in 16 bits for which it
// has no formula.
TEST(CudaFuse, DoesNotFuseMixedDataTypes) {
  KernelCompiler compiler({.timeout_seconds = 3600});
  const Tensors inputs = {at::randn({64}).to(at::kHalf), at::randn({64}).to(at::kBFloat16)};
  const auto is_fused = [&](const Function& function) {
    const Graph graph = graph_for_gpu(function, inputs, compiler);
    EXPECT_EQ(graph.nodes.size(), 1U);
    return passes::is_pointwise(graph, graph.nodes[0]);
  };
  EXPECT_FALSE(is_fused([](const Tensors& x) -> Tensors { return {x[0] > x[1]}; }));
  EXPECT_FALSE(is_fused([](const Tensors& x) -> Tensors { return {x[0] + x[1]}; }));
  EXPECT_FALSE(is_fused([](const Tensors& x) -> Tensors { return {x[0].pow(4)}; }));
  EXPECT_TRUE(is_fused([](const Tensors& x) -> Tensors { return {x[0].pow(2)}; }));
  EXPECT_TRUE(is_fused([](const Tensors& x) -> Tensors { return {x[0] + x[0]}; }));
}

}  // namespace
}  // namespace gallop::compile

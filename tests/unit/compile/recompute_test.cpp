#include <algorithm>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/executor.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/recorder.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int64_t kSize = 300;  // Side of square matrices, which are not small.

// The graph after the pass, as on a GPU, whose results must have the same bits.
Graph recomputed(const Function& function, const Tensors& inputs) {
  Graph graph = record(function, inputs).graph;
  for (Buffer& buffer : graph.buffers) buffer.device = {c10::kCUDA, 0};
  passes::recompute(graph);
  for (Buffer& buffer : graph.buffers) buffer.device = c10::kCPU;
  const size_t nodes = graph.nodes.size();
  passes::dce(graph);
  EXPECT_EQ(graph.nodes.size(), nodes) << "fuse makes no loop of what nothing reads";
  const Tensors wanted = function(inputs), found = Executor(graph).run(inputs);
  EXPECT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at::equal(found[i], wanted[i])) << i;
  return graph;
}

int64_t count(const Graph& graph, const std::string& op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return name_of(node.op) == op; });
}

Tensors matrices(int64_t number) {
  Tensors list;
  for (int64_t i = 0; i < number; ++i) list.push_back(at::randn({kSize, kSize}));
  return list;
}

TEST(Recompute, ComputesAgainWhatALaterLoopReads) {
  const Graph graph = recomputed(
      [](const Tensors& x) -> Tensors {
        const at::Tensor inner = at::mm(x[0], x[1]) * 0.05, bent = at::tanh(inner);
        const at::Tensor outer = at::mm(bent * inner, x[2]);
        return {outer * (bent * bent * -1 + 1)};  // As in a backward pass.
      },
      matrices(3));
  EXPECT_EQ(count(graph, "aten::tanh"), 2);
  EXPECT_EQ(count(graph, "aten::mm"), 2);
}

TEST(Recompute, StoresWhatAGemmReadsAndWhatIsAResult) {
  const Graph of_gemm = recomputed(
      [](const Tensors& x) -> Tensors {
        const at::Tensor bent = at::tanh(x[0] * 2);
        return {at::mm(bent, x[1]) * bent};
      },
      matrices(2));
  EXPECT_EQ(count(of_gemm, "aten::tanh"), 1);
  const Graph of_result = recomputed(
      [](const Tensors& x) -> Tensors {
        const at::Tensor bent = at::tanh(x[0] * 2);
        return {at::mm(bent * x[1], x[1]) * bent, bent};
      },
      matrices(2));
  EXPECT_EQ(count(of_result, "aten::tanh"), 1);
}

// A sum of two tensors is stored, unless its loop reads both in any case.
TEST(Recompute, DoesNotReadMoreThanItSaves) {
  const Graph stored = recomputed(
      [](const Tensors& x) -> Tensors {
        const at::Tensor sum = at::mm(x[0], x[1]) + at::mm(x[1], x[0]);
        return {at::mm(at::tanh(sum), x[2]) * sum};
      },
      matrices(3));
  EXPECT_EQ(count(stored, "aten::add.Tensor"), 1);
  const Graph repeated = recomputed(
      [](const Tensors& x) -> Tensors {
        const at::Tensor a = at::mm(x[0], x[1]), b = at::mm(x[1], x[0]), sum = a + b;
        return {at::mm(at::tanh(sum), x[2]) * sum * a * b};
      },
      matrices(3));
  EXPECT_EQ(count(repeated, "aten::add.Tensor"), 2);
}

TEST(Recompute, StoresWhatWouldChange) {
  const Graph graph = recomputed(
      [](const Tensors& x) -> Tensors {
        at::Tensor kept = at::mm(x[0], x[1]);
        const at::Tensor bent = at::tanh(kept);
        const at::Tensor outer = at::mm(bent * 2, x[2]);
        kept.narrow(0, 0, 1).zero_();
        return {outer * bent, kept};
      },
      matrices(3));
  EXPECT_EQ(count(graph, "aten::tanh"), 1);
}

TEST(Recompute, SeveralReadersOfALevelShareACopy) {
  const Graph graph = recomputed(
      [](const Tensors& x) -> Tensors {
        const at::Tensor inner = at::mm(x[0], x[1]) * 0.05, bent = at::sigmoid(inner);
        const at::Tensor outer = at::mm(bent * inner, x[2]);
        return {outer * bent, outer + bent * inner, at::mm(outer * bent, x[2]) * bent};
      },
      matrices(3));
  // In the first place, for the readers behind one GEMM, and for those behind two.
  EXPECT_EQ(count(graph, "aten::sigmoid"), 3);
}

TEST(Recompute, IsForGpus) {
  Graph graph = record(
                    [](const Tensors& x) -> Tensors {
                      const at::Tensor bent = at::tanh(x[0] * 2);
                      return {at::mm(bent * x[1], x[1]) * bent};
                    },
                    matrices(2))
                    .graph;
  const size_t nodes = graph.nodes.size();
  passes::recompute(graph);
  EXPECT_EQ(graph.nodes.size(), nodes);
}

}  // namespace
}  // namespace gallop::compile

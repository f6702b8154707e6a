// Which parameters of exported programs processes divide, and what is wrong with plans.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/model/exported/tensor_parallel_plan.h"
#include "unit/base/error_of.h"
#include "unit/model/exported_case.h"

namespace gallop::model::exported {
namespace {

Program program_of(const std::string& name) {
  Archive archive((folder() / (name + ".pt2")).string());
  return archive.program(archive.training_program());
}

TensorParallelPlan plan_of(const Program& program, const std::vector<std::string>& entries,
                           int processes) {
  return plan_tensor_parallel(program, {.entries = entries,
                                        .processes = processes,
                                        .file = "net.pt2",
                                        .logits = tensor_name_of(program.outputs.front().value)});
}

std::string error_of_plan(const std::string& name, const std::vector<std::string>& entries,
                          int processes) {
  const Program program = program_of(name);
  return error_of([&] { plan_of(program, entries, processes); });
}

// Queries, keys and values are one layer, whose weight is [in, out].
TEST(TensorParallelPlan, DividesFusedProjections) {
  const std::string layer = "transformer.h.0.";
  const TensorParallelPlan wanted = {
      {layer + "attn.c_attn.weight", {1, 16}}, {layer + "attn.c_attn.bias", {0, 16}},
      {layer + "attn.c_proj.weight", {0, 16}}, {layer + "mlp.c_fc.weight", {1, 64}},
      {layer + "mlp.c_fc.bias", {0, 64}},      {layer + "mlp.c_proj.weight", {0, 64}}};
  EXPECT_EQ(plan_of(program_of("gpt2"), {}, 2), wanted);
}

// Keys and values have two heads, queries four. What 4 processes cannot divide stays whole.
TEST(TensorParallelPlan, DividesGroupedQueryHeads) {
  const std::string layer = "model.layers.0.";
  TensorParallelPlan wanted = {
      {layer + "self_attn.q_proj.weight", {0, 32}}, {layer + "self_attn.k_proj.weight", {0, 16}},
      {layer + "self_attn.v_proj.weight", {0, 16}}, {layer + "self_attn.o_proj.weight", {1, 32}},
      {layer + "mlp.gate_proj.weight", {0, 24}},    {layer + "mlp.up_proj.weight", {0, 24}},
      {layer + "mlp.down_proj.weight", {1, 24}}};
  EXPECT_EQ(plan_of(program_of("qwen3"), {}, 2), wanted);
  wanted.erase(layer + "self_attn.k_proj.weight");
  wanted.erase(layer + "self_attn.v_proj.weight");
  EXPECT_EQ(plan_of(program_of("qwen3"), {}, 4), wanted);
}

TEST(TensorParallelPlan, FollowsItsEntries) {
  const Program qwen3 = program_of("qwen3");
  const TensorParallelPlan all = plan_of(qwen3, {}, 2);
  EXPECT_EQ(plan_of(qwen3, {"model.layers.*.mlp.*=replicate"}, 2).size(), all.size() - 3);
  const TensorParallelPlan mlp = {{"model.layers.0.mlp.gate_proj.weight", {0, 24}},
                                  {"model.layers.0.mlp.up_proj.weight", {0, 24}},
                                  {"model.layers.0.mlp.down_proj.weight", {1, 24}}};
  EXPECT_EQ(plan_of(qwen3, {"*.down_proj=rowwise", "*.mlp.*=colwise"}, 2), mlp);
  // The input of a layer may be whole.
  EXPECT_EQ(plan_of(qwen3, {"*.down_proj=rowwise"}, 2),
            TensorParallelPlan({{"model.layers.0.mlp.down_proj.weight", {1, 24}}}));
}

TEST(TensorParallelPlan, RejectsWhatCannotBeDivided) {
  EXPECT_EQ(
      error_of_plan("qwen3", {"mlp"}, 2),
      "parallel.tp_plan: has the entry 'mlp', which is not PATTERN=colwise, PATTERN=rowwise or "
      "PATTERN=replicate");
  EXPECT_EQ(error_of_plan("qwen3", {"model.layers.0.mlp.dawn_proj=rowwise"}, 2),
            "parallel.tp_plan: 'model.layers.0.mlp.dawn_proj' matches no linear layer or embedding "
            "of net.pt2; did you mean 'model.layers.0.mlp.down_proj'?");
  EXPECT_EQ(error_of_plan("qwen3", {"*.up_proj=colwise"}, 2),
            "parallel.tp_plan: 'model.layers.0.mlp.up_proj' of net.pt2 cannot be divided colwise "
            "among 2 processes: the outputs of 'model.layers.0.mlp.up_proj' reach node 'linear_6' "
            "(aten::linear at modeling_qwen3.py:81, in forward), which needs all channels, as its "
            "weight is not divided by inputs (rowwise)");
  EXPECT_EQ(error_of_plan("qwen3", {"*.up_proj=colwise", "*.down_proj=rowwise"}, 5),
            "parallel.tp_plan: 'model.layers.0.mlp.up_proj' of net.pt2 cannot be divided colwise "
            "among 5 processes: 'model.layers.0.mlp.up_proj' has 24 outputs, which 5 processes do "
            "not divide");
  EXPECT_EQ(error_of_plan("resnet", {}, 2),
            "parallel.name=tensor: net.pt2 has no linear layers that 2 processes can divide: 'fc' "
            "computes a result of the program; use parallel.name=zero-2");
}

}  // namespace
}  // namespace gallop::model::exported

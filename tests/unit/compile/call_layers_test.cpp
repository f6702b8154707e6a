#include "gallop/compile/call_layers.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/trace.h"
#include "gallop/compile/graph.h"
#include "gallop/compile/node_work.h"
#include "gallop/compile/recorder.h"
#include "unit/compile/fused_function.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

at::Tensor parameter(at::IntArrayRef sizes) { return at::randn(sizes).requires_grad_(); }

// Two convolutions with a batch norm, a join, and a linear layer, with an update of plain SGD.
struct Network {
  NamedTensors parameters = {{"stem.conv.weight", parameter({8, 3, 3, 3})},
                             {"stem.bn.weight", parameter({8})},
                             {"stem.bn.bias", parameter({8})},
                             {"block.conv.weight", parameter({8, 8, 3, 3})},
                             {"fc.weight", parameter({5, 8})},
                             {"fc.bias", parameter({5})}};
  NamedTensors buffers = {{"stem.bn.running_mean", at::zeros({8})},
                          {"stem.bn.running_var", at::ones({8})}};

  at::Tensor operator[](size_t i) const { return parameters[i].tensor; }

  at::Tensor forward(const at::Tensor& input) const {
    const TraceSpan span(SpanKind::kPhase, "forward");
    at::Tensor x = at::conv2d(input, (*this)[0], {}, 1, 1);
    x = at::batch_norm(x, (*this)[1], (*this)[2], buffers[0].tensor, buffers[1].tensor,
                       /*training=*/true, 0.1, 1e-5, /*cudnn_enabled=*/false);
    x = x.relu();
    at::Tensor y = x;
    {
      const TraceSpan layer(SpanKind::kLayer, "block");
      y = at::conv2d(x, (*this)[3], {}, 1, 1).sigmoid();
    }
    return at::linear(x.add(y).mean({2, 3}), (*this)[4], (*this)[5]);
  }

  Tensors operator()(const Tensors& batch) const {
    for (const auto& one : parameters) one.tensor.mutable_grad() = at::Tensor();
    at::Tensor loss = forward(batch[0]);
    {
      const TraceSpan span(SpanKind::kPhase, "loss");
      loss = at::mse_loss(loss, batch[1]);
    }
    {
      const TraceSpan span(SpanKind::kPhase, "backward");
      loss.backward();
    }
    const TraceSpan span(SpanKind::kPhase, "optimizer");
    const at::NoGradGuard no_grad;
    for (const auto& one : parameters) one.tensor.sub_(one.tensor.grad(), 0.1);
    return {loss.detach()};
  }

  GraphNames names() const {
    GraphNames names{.inputs = {"input", "target"}, .state = parameters};
    names.state.insert(names.state.end(), buffers.begin(), buffers.end());
    return names;
  }
};

const Tensors kBatch = {at::randn({4, 3, 8, 8}), at::randn({4, 5})};

using Places = std::multimap<std::string, std::pair<std::string, std::string>>;

// The phase and the layer of each node, by operator.
Places places_of(const Graph& graph, const GraphNames& names) {
  const CallLayers layers(graph, names);
  Places all;
  for (const Node& node : graph.nodes) {
    const auto places = layers.places_of(node);
    EXPECT_EQ(places.size(), 1U) << name_of(node.op);
    all.emplace(name_of(node.op), std::pair(places.at(0).phase, places.at(0).layer));
  }
  return all;
}

void expect_place(const Places& places, const std::string& op, const std::string& phase,
                  const std::string& layer) {
  const auto [begin, end] = places.equal_range(op);
  const bool found = std::any_of(
      begin, end, [&](const auto& place) { return place.second == std::pair(phase, layer); });
  EXPECT_TRUE(found) << op << " is nowhere in " << phase << " of '" << layer << "'";
}

TEST(CallLayers, FollowWeightsSpansAndTensors) {
  const Network network;
  const Recording recording = record(network, kBatch);
  ASSERT_EQ(recording.refusal, "");
  const Places places = places_of(recording.graph, network.names());
  expect_place(places, "aten::convolution", "forward", "stem.conv");
  expect_place(places, "aten::native_batch_norm", "forward", "stem.bn");
  expect_place(places, "aten::relu", "forward", "stem.bn");
  expect_place(places, "aten::convolution", "forward", "block");
  expect_place(places, "aten::sigmoid", "forward", "block");
  expect_place(places, "aten::addmm", "forward", "fc");
  expect_place(places, "aten::mse_loss", "loss", "loss");
}

TEST(CallLayers, FollowAutogradInBackward) {
  const Network network;
  const Recording recording = record(network, kBatch);
  const Places places = places_of(recording.graph, network.names());
  expect_place(places, "aten::mse_loss_backward", "backward", "loss");
  expect_place(places, "aten::mm", "backward", "fc");
  expect_place(places, "aten::sigmoid_backward", "backward", "block");
  expect_place(places, "aten::convolution_backward", "backward", "block");
  expect_place(places, "aten::threshold_backward", "backward", "stem.bn");
  expect_place(places, "aten::native_batch_norm_backward", "backward", "stem.bn");
  expect_place(places, "aten::convolution_backward", "backward", "stem.conv");
  expect_place(places, "aten::sub_.Tensor", "optimizer", "");
}

TEST(CallLayers, AreKeptByAllPasses) {
  const Network network;
  const FusedFunction compiled(network, kBatch);
  const CallLayers layers(compiled.graph, network.names());
  std::map<std::string, double> shares;
  for (const Node& node : compiled.graph.nodes) {
    const auto places = layers.places_of(node);
    EXPECT_FALSE(places.empty()) << name_of(node.op);
    double sum = 0;
    for (const NodePlace& place : places) {
      sum += place.share;
      shares[place.phase] += place.share;
    }
    EXPECT_NEAR(sum, 1, 1e-9) << name_of(node.op);
  }
  for (const char* phase : {"forward", "loss", "backward", "optimizer"}) {
    EXPECT_GT(shares[phase], 0) << phase;
  }
}

// The FLOPs of all nodes of a recorded function.
double flops_of(const Function& function, const Tensors& inputs) {
  const Recording recording = record(function, inputs);
  EXPECT_EQ(recording.refusal, "");
  double flops = 0;
  for (const Node& node : recording.graph.nodes) flops += work_of(recording.graph, node).flops;
  return flops;
}

// As torch.utils.flop_counter in PyTorch 2.11 counts them for the same network: 110,592 and 294,912
// for the convolutions, 320 for the linear layer; in backward, once more for each gradient, of
// which the input has none.
TEST(NodeWork, CountsTheFlopsThatPyTorchCounts) {
  const Network network;
  EXPECT_EQ(flops_of(network, kBatch), (110592 + 294912 + 320) + (110592 + 2 * 294912 + 2 * 320));
}

// A filter of 3 taps over 8 pixels with a padding of 1 has 22 of 24 taps inside.
TEST(NodeWork, LeavesOutPaddingAndWhatACausalMaskHides) {
  const auto needed = [](const Function& function, const Tensors& inputs) {
    const Recording recording = record(function, inputs);
    EXPECT_EQ(recording.refusal, "");
    if (recording.graph.nodes.size() != 1) return 0.0;
    const NodeWork work = work_of(recording.graph, recording.graph.nodes[0]);
    return work.needed_flops / work.flops;
  };
  const Tensors images = {at::randn({2, 3, 8, 8}), at::randn({4, 3, 3, 3})};
  const auto padded = [](const Tensors& in) { return Tensors{at::conv2d(in[0], in[1], {}, 1, 1)}; };
  EXPECT_NEAR(needed(padded, images), 22.0 * 22 / (24 * 24), 1e-9);
  const auto plain = [](const Tensors& in) { return Tensors{at::conv2d(in[0], in[1])}; };
  EXPECT_EQ(needed(plain, images), 1);
  const Tensors qkv = {at::randn({2, 2, 4, 8}), at::randn({2, 2, 4, 8}), at::randn({2, 2, 4, 8})};
  const auto attend = [](const Tensors& in) {
    return Tensors{std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
        in[0], in[1], in[2], 0, /*is_causal=*/true))};
  };
  EXPECT_NEAR(needed(attend, qkv), 10.0 / 16, 1e-9);
}

TEST(NodeWork, CountsBytes) {
  const Tensors inputs = {at::randn({4, 8}), at::randn({8, 6})};
  const Recording recording =
      record([](const Tensors& in) { return Tensors{in[0].matmul(in[1])}; }, inputs);
  ASSERT_EQ(recording.graph.nodes.size(), 1U);
  const NodeWork work = work_of(recording.graph, recording.graph.nodes[0]);
  EXPECT_EQ(work.flops, 2 * 4 * 8 * 6);
  EXPECT_EQ(work.bytes, 4 * (4 * 8 + 8 * 6 + 4 * 6));
  EXPECT_EQ(work.format, c10::kFloat);
}

}  // namespace
}  // namespace gallop::compile

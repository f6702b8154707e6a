#include "gallop/compile/replayer.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/compile/compiled_function.h"
#include "gallop/compile/recorder.h"
#include "unit/compile/fake_device_graph.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

// Weights with a momentum, moved by random numbers too; mode 1 gives out more.
struct Trained {
  at::Tensor weight = at::ones({4, 3}), momentum = at::zeros_like(weight);

  Tensors step(const Tensors& in, int64_t mode) {
    const auto dropped = std::get<0>(at::native_dropout(in[0].matmul(weight), 0.5, true));
    const auto gradient = in[0].t().matmul(at::tanh(dropped));
    momentum.mul_(0.9).add_(gradient);
    weight.sub_(momentum * in[1]);
    const auto loss = dropped.square().sum();
    return mode == 0 ? Tensors{loss, at::Tensor(), weight}
                     : Tensors{loss, gradient.abs().max(), weight};
  }
};

Tensors batch(int64_t call) {
  return {at::full({5, 4}, 0.25 * static_cast<double>(call + 1)), at::full({}, 0.5)};
}

void seed(int64_t call) {
  auto generator = at::globalContext().defaultGenerator(c10::kCPU);
  generator.set_current_seed(static_cast<uint64_t>(call));
}

TEST(Replayer, GraphReplaysAreBitIdentical) {
  const at::NoGradGuard no_grad;
  Trained plain, trained;
  CompiledFunction compiled([&](const Tensors& in, int64_t mode) { return trained.step(in, mode); },
                            {trained.weight, trained.momentum},
                            {.make_device_graph = make_fake_graph});
  CompiledFunction node_by_node(
      [&](const Tensors& in, int64_t mode) { return plain.step(in, mode); },
      {plain.weight, plain.momentum});
  std::vector<Tensors> kept, wanted;
  for (int64_t call = 0; call < 8; ++call) {
    const int64_t mode = call % 2;
    seed(call);
    wanted.push_back(node_by_node(batch(call), mode));
    wanted.back()[2] = wanted.back()[2].clone();
    seed(call);
    kept.push_back(compiled(batch(call), mode));
    EXPECT_TRUE(at::equal(kept.back()[2], wanted.back()[2])) << call;
    EXPECT_TRUE(at::equal(trained.momentum, plain.momentum)) << call;
  }
  // Previously returned results are not overwritten.
  for (size_t call = 0; call < kept.size(); ++call) {
    EXPECT_TRUE(at::equal(kept[call][0], wanted[call][0])) << call;
    EXPECT_EQ(kept[call][1].defined(), call % 2 == 1);
    if (call % 2 == 1) {
      EXPECT_TRUE(at::equal(kept[call][1], wanted[call][1])) << call;
    }
    EXPECT_TRUE(kept[call][2].is_alias_of(trained.weight));
  }
  EXPECT_EQ(compiled.report().replayed, 8);
  EXPECT_EQ(compiled.report().captured, 6) << "all but the first call of each mode";
  EXPECT_TRUE(compiled.report().fallbacks.empty());
  EXPECT_EQ(node_by_node.report().captured, 0);
}

// A replayer of the function.
Replayer replayer_of(const Function& function, const Tensors& inputs,
                     const MakeDeviceGraph& make = make_fake_graph,
                     const std::function<void(Graph&)>& change = {}) {
  Recording recording = record(function, inputs);
  EXPECT_EQ(recording.refusal, "");
  if (change) change(recording.graph);
  return Replayer(std::make_unique<Executor>(std::move(recording.graph)), make);
}

void expect_plain(Replayer& replayer, const Tensors& inputs, const at::Tensor& wanted,
                  const std::string& fallback_reason) {
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(at::equal(replayer.run(inputs)[0], wanted));
    EXPECT_FALSE(replayer.is_captured());
  }
  EXPECT_EQ(replayer.fallback_reason(), fallback_reason);
}

const Function kTwice = [](const Tensors& in) -> Tensors { return {in[0] * 2}; };

TEST(Replayer, HostWorkIsNotCaptured) {
  const Tensors inputs = {at::randn({3})};
  auto replayer = replayer_of(kTwice, inputs, make_fake_graph, [](Graph& graph) {
    graph.buffers.push_back({.device = {c10::kCUDA, 0}});
  });
  expect_plain(
      replayer, inputs, inputs[0] * 2,
      "the step cannot be captured as a device graph: aten::mul.Scalar works on memory of cpu "
      "besides that of cuda:0");
}

TEST(Replayer, FunctionsThatWriteArgumentsAreNotCaptured) {
  const Function function = [](const Tensors& in) -> Tensors { return {in[0].fill_(3)}; };
  const Tensors inputs = {at::randn({3})};
  auto replayer = replayer_of(function, inputs);
  expect_plain(
      replayer, inputs, at::full({3}, 3.0),
      "the step cannot be captured as a device graph: aten::fill_.Scalar changes an argument");
}

TEST(Replayer, StridedArgumentsAreNotCaptured) {
  const Tensors inputs = {at::randn({3, 1}).expand({3, 4})};
  auto replayer = replayer_of(kTwice, inputs);
  expect_plain(
      replayer, inputs, inputs[0] * 2,
      "the step cannot be captured as a device graph: an argument has several elements at one "
      "place, or gaps between them");
}

TEST(Replayer, RunsNodeByNodeIfTheCaptureFails) {
  struct Refusing : DeviceGraph {
    void capture(const std::function<void()>& work) override {
      work();
      TORCH_CHECK(false, "operation not permitted when stream is capturing");
    }
    void replay() override {}
  };
  const Tensors inputs = {at::randn({3})};
  auto replayer = replayer_of(
      kTwice, inputs, [](c10::Device, std::string&) { return std::make_unique<Refusing>(); });
  expect_plain(
      replayer, inputs, inputs[0] * 2,
      "the step cannot be captured as a device graph: operation not permitted when stream is "
      "capturing");
}

TEST(Replayer, TheCpuHasNoGraphs) {
  const Tensors inputs = {at::randn({3})};
  auto replayer = replayer_of(kTwice, inputs, make_device_graph);
  expect_plain(replayer, inputs, inputs[0] * 2, "");
}

TEST(DeviceGraph, ReportsAMissingLibrary) {
  std::string missing;
  EXPECT_EQ(make_device_graph_of("libgallop_of_nobody.so", {c10::kCUDA, 0}, missing), nullptr);
  EXPECT_EQ(missing.find("steps are not captured as CUDA graphs: libgallop_of_nobody.so: "), 0U)
      << missing;
}

TEST(DeviceGraph, ReportsAnotherLibrary) {
  std::string missing;
  EXPECT_EQ(make_device_graph_of("libm.so.6", {c10::kCUDA, 0}, missing), nullptr);
  EXPECT_NE(missing.find("gallop_make_cuda_graph"), std::string::npos) << missing;
}

}  // namespace
}  // namespace gallop::compile

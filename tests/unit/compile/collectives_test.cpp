#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "gallop/compile/analysis.h"
#include "gallop/compile/arena.h"
#include "gallop/compile/compiled_function.h"
#include "gallop/compile/executor.h"
#include "gallop/compile/memory_plan.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"
#include "unit/compile/tensor_bits.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

int64_t works_done = 0;

// Does its work as late as allowed, in wait(): its inputs must be alive until then.
class LateWork final : public c10d::Work {
 public:
  explicit LateWork(std::function<void()> work) : work_(std::move(work)) {}

  bool wait(std::chrono::milliseconds) override {
    if (work_) {
      const at::NoGradGuard no_grad;
      std::exchange(work_, nullptr)();
      works_done += 1;
    }
    return true;
  }

 private:
  std::function<void()> work_;
};

// The first of two processes; the tensors of the second are 10 times as large.
class Pair final : public c10d::Backend {
 public:
  Pair() : c10d::Backend(/*rank=*/0, /*size=*/2) {}

  const std::string getBackendName() const override { return "pair"; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions&) override {
    return c10::make_intrusive<LateWork>([tensor = tensors.at(0)] { tensor.mul_(11); });
  }

  c10::intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(
      std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
      const c10d::AllgatherOptions&) override {
    return c10::make_intrusive<LateWork>([out = outputs.at(0), in = inputs.at(0)] {
      out.narrow(0, 0, in.size(0)).copy_(in);
      out.narrow(0, in.size(0), in.size(0)).copy_(in * 10);
    });
  }
};

// The registry holds weak references to groups.
void make_group() {
  static const auto kGroup = [] {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(/*rank=*/0, /*size=*/2);
    group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::CUSTOM,
                      c10::intrusive_ptr<c10d::Backend>(c10::make_intrusive<Pair>()));
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
    c10d::register_process_group("pair", group);
    return group;
  }();
}

at::Tensor call(const char* name, torch::jit::Stack arguments) {
  make_group();
  const std::string full = std::string("_c10d_functional::") + name;
  c10::Dispatcher::singleton().findSchemaOrThrow(full.c_str(), "").callBoxed(arguments);
  return arguments.at(0).toTensor();
}

at::Tensor all_reduce(const at::Tensor& x) { return call("all_reduce", {x, "sum", "pair"}); }
at::Tensor all_reduce_(const at::Tensor& x) { return call("all_reduce_", {x, "sum", "pair"}); }
at::Tensor all_gather(const at::Tensor& x) {
  return call("all_gather_into_tensor", {x, 2, "pair"});
}
at::Tensor wait(const at::Tensor& x) { return call("wait_tensor", {x}); }

std::vector<std::string> only(std::vector<std::string> names) {
  std::vector<std::string> off;
  for (const Pass& pass : all_passes()) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) {
      off.emplace_back(pass.name);
    }
  }
  return off;
}

const std::vector<std::string> kExact = {"functionalize", "cse",           "merge-casts",
                                         "dce",           "rematerialize", "schedule"};

Graph graph_of(const Function& function, const Tensors& inputs,
               const std::vector<std::string>& passes) {
  Recording recording = record(function, inputs);
  EXPECT_EQ(recording.refusal, "");
  KernelCompiler compiler;
  PassContext context{.compiler = compiler};
  run_passes(recording.graph, only(passes), context);
  return recording.graph;
}

std::vector<std::string> calls_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    const std::string name = name_of(node.op);
    names.push_back(name.substr(name.find(':') + 2));
  }
  return names;
}

// Gradients of two layers, each gathered as soon as it is there, and used at the end.
Tensors two_layers(const Tensors& in) {
  const at::Tensor second = in[0].mm(in[0]);
  const at::Tensor second_sum = wait(all_reduce(second));
  const at::Tensor first = second.mm(in[0]);
  const at::Tensor both = wait(all_gather(first));
  const at::Tensor rest = first.tanh().mm(in[0]);
  return {second_sum.add(1), both.neg(), rest};
}

TEST(Collectives, AreRecordedWithTheirWaits) {
  const auto names = calls_of(graph_of(two_layers, {at::ones({4, 4})}, {}));
  EXPECT_EQ(names, std::vector<std::string>({"mm", "all_reduce", "wait_tensor", "mm",
                                             "all_gather_into_tensor", "wait_tensor", "tanh", "mm",
                                             "add.Scalar", "neg"}));
}

TEST(Collectives, OverlapWithComputation) {
  const auto names = calls_of(graph_of(two_layers, {at::ones({4, 4})}, {"schedule"}));
  EXPECT_EQ(names,
            std::vector<std::string>({"mm", "all_reduce", "mm", "all_gather_into_tensor", "tanh",
                                      "mm", "wait_tensor", "add.Scalar", "wait_tensor", "neg"}));
}

TEST(Collectives, StartAsSoonAsTheirTensorsAreReady) {
  const Function function = [](const Tensors& in) -> Tensors {
    const at::Tensor first = in[0].mm(in[0]), second = first.mm(in[0]).tanh();
    const at::Tensor sum = wait(all_reduce(first)), other = wait(all_reduce(second));
    return {sum.neg(), other.neg()};
  };
  const auto names = calls_of(graph_of(function, {at::ones({4, 4})}, {"schedule"}));
  EXPECT_EQ(names, std::vector<std::string>({"mm", "all_reduce", "mm", "tanh", "all_reduce",
                                             "wait_tensor", "neg", "wait_tensor", "neg"}));
}

TEST(Collectives, KeepTheirInputsAliveUntilTheWait) {
  const Function function = [](const Tensors& in) -> Tensors {
    const at::Tensor x = in[0] * 2;
    const at::Tensor gathered = all_gather(x);
    const at::Tensor y = (in[0] * 3).tanh();
    return {wait(gathered).sum() + y.sum()};
  };
  const Graph graph = graph_of(function, {at::randn({64, 64})}, {});
  const auto names = calls_of(graph);
  const auto place_of = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  const Node& start = graph.nodes[place_of("all_gather_into_tensor")];
  const auto lives = lifetimes_of(graph);
  const MemoryPlan plan = plan_memory(graph, Arena::kMargin);
  for (const ViewId view : {start.arguments[0].views[0], start.results[0].views[0]}) {
    const BufferId buffer = graph.views[view].buffer;
    EXPECT_GE(lives[buffer].last, place_of("wait_tensor"));
    EXPECT_EQ(plan.offsets[buffer], kNone);
  }
}

TEST(Collectives, AreNeitherMergedNorDropped) {
  const Function function = [](const Tensors& in) -> Tensors {
    const at::Tensor x = in[0] * 2;
    wait(all_reduce(x));
    return {wait(all_reduce(x)) + wait(all_reduce(x))};
  };
  const auto names = calls_of(graph_of(function, {at::ones({4})}, kExact));
  EXPECT_EQ(std::count(names.begin(), names.end(), "all_reduce"), 3);
  EXPECT_EQ(std::count(names.begin(), names.end(), "wait_tensor"), 3);
}

// Such as that for a tensor that was sent, whose memory is free afterwards.
TEST(Collectives, KeepAWaitThatNothingUsesInItsPlace) {
  const Function function = [](const Tensors& in) -> Tensors {
    const at::Tensor sent = all_reduce(in[0] * 2);
    const at::Tensor y = in[0].mm(in[0]);
    wait(sent);
    return {y.mm(in[0]).tanh()};
  };
  const auto names = calls_of(graph_of(function, {at::ones({4, 4})}, kExact));
  EXPECT_EQ(names, std::vector<std::string>(
                       {"mul.Scalar", "all_reduce", "mm", "wait_tensor", "mm", "tanh"}));
}

struct Stepped {
  at::Tensor weight = at::ones({32, 32});

  // A step of two processes: each gradient is summed over both, one of them in place.
  Tensors operator()(const Tensors& in) const {
    const at::NoGradGuard no_grad;
    const at::Tensor y = in[0].mm(weight).tanh();
    const at::Tensor gradient = in[0].t().mm(y);
    const at::Tensor sum = wait(all_reduce(gradient));
    const at::Tensor gathered = wait(all_gather(y * 0.5));
    const at::Tensor norm = sum.norm();
    y.mul_(2);
    all_reduce_(y);
    weight.sub_(sum / norm, 0.1);
    return {norm, gathered.sum(), wait(y).sum(), y};
  }
};

TEST(Collectives, CompiledStepsAreBitIdentical) {
  const Stepped plain, step;
  CompiledFunction compiled([&](const Tensors& in, int64_t) { return step(in); }, {step.weight},
                            {.passes_off = only(kExact)});
  for (int i = 0; i < 5; ++i) {
    const Tensors inputs = {at::randn({32, 32})};
    const Tensors wanted = plain(inputs);
    const int64_t before = works_done;
    const Tensors got = compiled(inputs);
    EXPECT_EQ(works_done - before, i < 2 ? 6 : 3);  // Including those of dry runs.
    for (size_t j = 0; j < wanted.size(); ++j) {
      EXPECT_EQ(difference_of_bits(got[j], wanted[j]), "") << j;
    }
    EXPECT_EQ(difference_of_bits(step.weight, plain.weight), "");
  }
  EXPECT_TRUE(compiled.report().reasons.empty());
}

TEST(Collectives, DryRunsUseCopiesOfState) {
  const at::Tensor state = at::ones({64});
  const Recording recording =
      record([&](const Tensors& in) -> Tensors { return {wait(all_reduce_(state)) + in[0]}; },
             {at::ones({64})});
  EXPECT_EQ(recording.refusal, "");
  EXPECT_EQ(recording.results[0].sum().item<float>(), 12 * 64);
  EXPECT_EQ(state.sum().item<float>(), 64);
}

}  // namespace
}  // namespace gallop::compile

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/compile/executor.h"
#include "gallop/compile/memory_plan.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"
#include "unit/compile/random_functions.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

void run_exact_passes(Graph& graph) {
  KernelCompiler compiler;
  PassContext context{.compiler = compiler};
  run_passes(graph, names_of_rounding_passes(), context);
}

// The memory of this thread's CPU tensors outside of arenas.
class Meter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    now += bytes;
    most = std::max(most, now);
  }
  void reportOutOfMemory(int64_t, size_t, size_t, c10::Device) override {}
  bool memoryProfilingEnabled() const override { return true; }

  int64_t now = 0, most = 0;
};

struct Taken {
  int64_t now = 0, most = 0;
};

// The peak memory of a call, and the memory that is still in use.
template <typename Call>
Taken measured(const Call& call) {
  const auto meter = std::make_shared<Meter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  call();
  return {.now = meter->now, .most = meter->most};
}

// The first and last node that name a buffer, found without accesses_of().
std::vector<std::pair<int64_t, int64_t>> spans_of(const Graph& graph) {
  std::vector<std::pair<int64_t, int64_t>> spans(graph.buffers.size(), {-1, -1});
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const auto* list : {&graph.nodes[i].arguments, &graph.nodes[i].results}) {
      for (const Operand& operand : *list) {
        for (const ViewId view : operand.views) {
          if (view == kNone) continue;
          auto& [first, last] = spans[graph.views[view].buffer];
          if (first < 0) first = static_cast<int64_t>(i);
          last = static_cast<int64_t>(i);
        }
      }
    }
  }
  return spans;
}

void expect_apart(const Graph& graph, const MemoryPlan& plan) {
  const auto spans = spans_of(graph);
  for (size_t a = 0; a < graph.buffers.size(); ++a) {
    if (plan.offsets[a] == kNone) continue;
    EXPECT_EQ(plan.offsets[a] % MemoryPlan::kAlignment, 0);
    EXPECT_GE(plan.offsets[a], Arena::kMargin);
    EXPECT_LE(plan.offsets[a] + graph.buffers[a].bytes, plan.bytes);
    EXPECT_EQ(graph.buffers[a].kind, Buffer::Kind::kTemporary);
    for (size_t b = 0; b < a; ++b) {
      const bool at_once = spans[a].first <= spans[b].second && spans[b].first <= spans[a].second;
      if (plan.offsets[b] == kNone || !at_once) continue;
      EXPECT_TRUE(plan.offsets[a] + graph.buffers[a].bytes <= plan.offsets[b] - Arena::kMargin ||
                  plan.offsets[b] + graph.buffers[b].bytes <= plan.offsets[a] - Arena::kMargin)
          << "buffers " << a << " and " << b;
    }
  }
}

TEST(MemoryPlan, SeparatesSimultaneouslyLiveBuffers) {
  int64_t planned = 0;
  for (uint64_t number = 1; number <= 300; ++number) {
    const Program program = random_program(number, Flavor::kAny);
    const RandomFunction function(program);
    try {
      function(arguments_of(program, 0));
    } catch (const std::exception&) {
      continue;
    }
    Graph graph = record(function, arguments_of(program, 0)).graph;
    for (const bool passes : {false, true}) {
      if (passes) run_exact_passes(graph);
      const MemoryPlan plan = plan_memory(graph, Arena::kMargin);
      EXPECT_GE(plan.bytes, plan.most_in_use);
      expect_apart(graph, plan);
      planned += std::count_if(plan.offsets.begin(), plan.offsets.end(),
                               [](int64_t offset) { return offset != kNone; });
    }
  }
  EXPECT_GT(planned, 1000);
}

// A chain with branches, of tensors of 256 kB.
Tensors large_tensors(const Tensors& inputs) {
  at::Tensor x = inputs[0];
  for (int i = 0; i < 4; ++i) {
    const at::Tensor y = (x * 2).tanh();
    x = y.t().matmul(x).sigmoid().add_(y) + x.sum(0);
  }
  return {x.sum(1)};
}

TEST(MemoryPlan, NeedsNoMoreThanTheEagerFunction) {
  const Tensors inputs = {at::randn({256, 256})};
  const auto plain = measured([&] { large_tensors(inputs); });
  const Graph graph = record(large_tensors, inputs).graph;
  Executor executor(graph, Arena::reserve());
  executor.run(inputs);
  const auto compiled = measured([&] { executor.run(inputs); });
  ASSERT_GT(executor.planned_bytes(), 0);
  EXPECT_LE(compiled.most + executor.planned_bytes(), plain.most * 101 / 100);
}

// State of 1 MB that is changed at the end, in place, by a temporary tensor.
TEST(Record, DoesNotCopyStateThatIsUnusedAfterItsUpdate) {
  const at::Tensor weight = at::ones({512, 512}), moment = at::zeros({512, 512});
  const auto update = [&](const Tensors& in) -> Tensors {
    const at::Tensor gradient = (weight * in[0]).tanh();
    moment.mul_(0.9).add_(gradient);
    weight.sub_(moment, 0.1);
    return {gradient.sum()};
  };
  const Tensors inputs = {at::ones({512})};
  const auto trial = [&](Outcome outcome) {
    return measured([&] { record(update, inputs, outcome); }).most;
  };
  const auto plain = measured([&] { (weight * inputs[0]).tanh().sum(); });
  EXPECT_LE(trial(Outcome::kNotWanted), plain.most + 10'000);
  EXPECT_GT(trial(Outcome::kWanted), plain.most);
  EXPECT_EQ(weight.sum().item<float>(), 512 * 512);
}

TEST(Executor, ReleasesMemoryAfterACall) {
  with_random_programs(
      200, [&](const Program& program, const RandomFunction& function, const Tensors& inputs) {
        for (const bool planned : {false, true}) {
          Executor executor(record(function, inputs).graph, planned ? Arena::reserve() : nullptr);
          executor.run(inputs);
          EXPECT_EQ(measured([&] { executor.run(inputs); }).now, 0) << text_of(program);
        }
      });
}

TEST(Executor, KeepsThePlanIfResultsAreUnused) {
  Executor executor(record(
                        [](const Tensors& in) -> Tensors {
                          const at::Tensor x = in[0] * 2;
                          const auto [values, places] = x.max(0);
                          (x + 1).mul_(3);
                          return {values.sum()};
                        },
                        {at::randn({64, 64})})
                        .graph,
                    Arena::reserve());
  for (int i = 0; i < 3; ++i) executor.run({at::randn({64, 64})});
  EXPECT_GT(executor.planned_bytes(), 0);
}

// Operators for these tests.
std::vector<at::Tensor> kept;
bool fails = false;

at::Tensor keep_result(const at::Tensor& x) {
  const at::Tensor result = x * 3;
  kept.push_back(result);
  return result;
}

at::Tensor keep_argument(const at::Tensor& x) {
  kept.push_back(x);
  return x * 3;
}

// A tensor of the size of its result, and therefore at its planned offset.
at::Tensor keep_scratch(const at::Tensor& x) {
  kept.push_back(x * 5);
  return x * 3;
}

at::Tensor fail_sometimes(const at::Tensor& x) {
  const at::Tensor scratch = x + 1;
  if (fails) throw std::runtime_error("failed on purpose");
  return scratch * 2;
}

at::Tensor call(const char* name, const at::Tensor& x) {
  static torch::Library library(torch::Library::DEF, "gallop_test", {}, __FILE__, __LINE__);
  static const bool kDefined = [] {
    const auto define = [](const char* op, at::Tensor (*body)(const at::Tensor&)) {
      library.def((std::string(op) + "(Tensor x) -> Tensor").c_str());
      library.impl(op, torch::dispatch(c10::DispatchKey::CPU, torch::CppFunction(body)));
    };
    define("keep_result", &keep_result);
    define("keep_argument", &keep_argument);
    define("keep_scratch", &keep_scratch);
    define("fail_sometimes", &fail_sometimes);
    return true;
  }();
  static_cast<void>(kDefined);
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("gallop_test::") + name).c_str(), "")
      .typed<at::Tensor(const at::Tensor&)>()
      .call(x);
}

class KeepingOperator : public testing::TestWithParam<const char*> {};

TEST_P(KeepingOperator, DiscardsThePlanAndKeepsItsMemory) {
  const auto uses = [](const Tensors& in) -> Tensors {
    const at::Tensor y = call(GetParam(), in[0] * 2);
    return {(y.exp() + y).sum() - (y * 2).cos().sum()};
  };
  const auto inputs_of = [](int64_t rows, int call) {
    return Tensors{at::full({rows, 50}, 0.01 * (call + 1))};
  };
  // Two graphs, of two shapes, in one arena.
  CompiledFunction compiled([&](const Tensors& in, int64_t) { return uses(in); }, {},
                            {.passes_off = names_of_rounding_passes()});
  Tensors copies, all_kept;
  for (int i = 0; i < 8; ++i) {
    const Tensors inputs = inputs_of(i % 2 == 0 ? 30 : 40, i);
    kept.clear();
    const at::Tensor wanted = uses(inputs)[0];
    copies.push_back(kept[0].clone());
    kept.clear();
    EXPECT_TRUE(at::equal(compiled(inputs)[0], wanted)) << i;
    all_kept.push_back(kept.back());
    for (size_t j = 0; j < copies.size(); ++j) {
      EXPECT_TRUE(at::equal(all_kept[j], copies[j])) << "kept by call " << j << ", after " << i;
    }
  }
  const std::shared_ptr<Arena> arena = Arena::reserve();
  Executor executor(record(uses, inputs_of(30, 0)).graph, arena);
  EXPECT_GT(executor.planned_bytes(), 0);
  executor.run(inputs_of(30, 0));
  EXPECT_EQ(executor.planned_bytes(), 0);
  kept.clear();
}

INSTANTIATE_TEST_SUITE_P(, KeepingOperator,
                         testing::Values("keep_result", "keep_argument", "keep_scratch"),
                         [](const auto& op) { return std::string(op.param); });

TEST(CompiledFunction, ContinuesAfterAnOperatorThrows) {
  CompiledFunction compiled(
      [](const Tensors& in, int64_t) -> Tensors {
        const at::Tensor x = (in[0] * 2).exp();
        return {call("fail_sometimes", x).log() + x};
      },
      {}, {.passes_off = names_of_rounding_passes()});
  const Tensors inputs = {at::randn({40, 50})};
  const at::Tensor x = (inputs[0] * 2).exp(), wanted = ((x + 1) * 2).log() + x;
  for (int i = 0; i < 8; ++i) {
    fails = i % 2 == 1;
    if (fails) {
      EXPECT_THROW(compiled(inputs), std::runtime_error);
    } else {
      EXPECT_TRUE(at::equal(compiled(inputs)[0], wanted)) << i;
    }
  }
  fails = false;
  EXPECT_TRUE(compiled.report().reasons.empty());
}

TEST(CompiledFunction, ContinuesAfterADryRunThrows) {
  fails = true;
  CompiledFunction compiled(
      [](const Tensors& in, int64_t) -> Tensors { return {call("fail_sometimes", in[0])}; }, {});
  EXPECT_THROW(compiled({at::ones({3})}), std::runtime_error);
  fails = false;
  EXPECT_EQ(compiled({at::ones({3})})[0].sum().item<float>(), 12);
  fails = true;
  EXPECT_THROW(compiled({at::ones({3})}), std::runtime_error);
  fails = false;
  EXPECT_EQ(compiled({at::ones({3})})[0].sum().item<float>(), 12);
}

// A function of its own, which changes a state.
struct Worker {
  at::Tensor state, plain_state;
  std::unique_ptr<CompiledFunction> compiled;
  int number;

  explicit Worker(int n) : state(at::ones({60, 60})), plain_state(state.clone()), number(n) {
    compiled = std::make_unique<CompiledFunction>(
        [this](const Tensors& in, int64_t) { return step(in[0], state); }, Tensors{state},
        CompileConfig{.passes_off = names_of_rounding_passes()});
  }

  Tensors step(const at::Tensor& x, const at::Tensor& lasting) const {
    const at::Tensor y = (x * number).tanh().matmul(lasting);
    lasting.mul_(0.5).add_(y.t(), 0.01);
    return {y.sum(0), (y + 1).narrow(0, 1, 3)};
  }

  void call(int64_t times) {
    for (int64_t i = 0; i < times; ++i) {
      const at::Tensor x = at::full({60, 60}, 0.001 * static_cast<double>(i % 7));
      const Tensors wanted = step(x, plain_state), got = (*compiled)({x});
      ASSERT_TRUE(at::equal(got[0], wanted[0]) && at::equal(got[1], wanted[1])) << number;
    }
    ASSERT_TRUE(at::equal(state, plain_state)) << number;
  }
};

TEST(CompiledFunction, AlternatesWithOthers) {
  Worker one(1), two(2);
  for (int i = 0; i < 10; ++i) {
    one.call(2);
    two.call(3);
  }
}

TEST(CompiledFunction, RunsConcurrentlyWithOthers) {
  std::vector<std::thread> threads;
  for (int number = 1; number <= 3; ++number) {
    threads.emplace_back([number] {
      for (int round = 0; round < 5; ++round) Worker(number).call(40);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CompiledFunction, AnyNumberCanBeAlive) {
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int number = 0; number < 24; ++number) workers.push_back(std::make_unique<Worker>(number));
    for (int i = 0; i < 3; ++i) {
      for (const auto& worker : workers) worker->call(2);
    }
  }
  EXPECT_NE(Arena::reserve(), nullptr);
}

TEST(CompiledFunction, ResultsOutliveIt) {
  Tensors results, copies;
  for (int number = 1; number < 6; ++number) {
    Worker worker(number);
    worker.call(3);
    for (const at::Tensor& result : (*worker.compiled)({at::full({60, 60}, 0.1)})) {
      results.push_back(result);
      copies.push_back(result.clone());
    }
  }
  for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(at::equal(results[i], copies[i])) << i;
}

}  // namespace
}  // namespace gallop::compile

#include "gallop/profile/profile.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/profile/chrome_trace.h"
#include "gallop/profile/profile_text.h"

namespace gallop::profile {
namespace {

constexpr double kMs = 1e-3;

// A trace with times in milliseconds.
class TraceBuilder {
 public:
  TraceBuilder() {
    trace_.threads.push_back({.id = 1, .name = "gallop", .main = true, .events = {}});
    trace_.threads.push_back({.id = 2, .name = "loader", .events = {}});
  }

  TraceBuilder& main(SpanKind kind, const std::string& name, double begin, double end,
                     int64_t number = -1) {
    return add(0, kind, name, begin, end, number);
  }
  TraceBuilder& loader(const std::string& name, double begin, double end) {
    return add(1, SpanKind::kData, name, begin, end, -1);
  }
  Trace take(double end) {
    trace_.begin_ns = ns(0);
    trace_.end_ns = ns(end);
    return trace_;
  }

 private:
  // Any beginning but 0.
  static int64_t ns(double ms) { return 5'000'000'000 + static_cast<int64_t>(1e6 * ms); }

  TraceBuilder& add(size_t thread, SpanKind kind, const std::string& name, double begin, double end,
                    int64_t number) {
    trace_.threads[thread].events.push_back(
        {.name = name, .kind = kind, .number = number, .begin_ns = ns(begin), .end_ns = ns(end)});
    return *this;
  }

  Trace trace_;
};

double phase(const Profile& profile, const std::string& name) {
  const auto found = std::find_if(profile.phases.begin(), profile.phases.end(),
                                  [&](const PhaseTime& one) { return one.name == name; });
  return found == profile.phases.end() ? -1 : found->seconds;
}

const LayerTime& layer(const Profile& profile, const std::string& name) {
  const auto found = std::find_if(profile.layers.begin(), profile.layers.end(),
                                  [&](const LayerTime& one) { return one.name == name; });
  EXPECT_NE(found, profile.layers.end()) << name;
  return *found;
}

// Two eager steps of 10 and 20 ms, each followed by 1 ms that belongs to it.
Trace eager_trace() {
  TraceBuilder builder;
  for (const auto& [begin, scale, number] : {std::tuple(0.0, 1.0, 4), std::tuple(10.0, 2.0, 5)}) {
    const auto at = [&, begin = begin, scale = scale](double ms) { return begin + scale * ms; };
    builder.main(SpanKind::kDataWait, "next batch", at(0), at(1))
        .main(SpanKind::kData, "decode", at(0.2), at(0.8))  // Without loader threads.
        .main(SpanKind::kOperator, "aten::conv2d", at(2), at(3))
        .main(SpanKind::kOperator, "aten::convolution", at(2.2), at(2.9))
        .main(SpanKind::kPhase, "forward", at(1.5), at(4))
        .main(SpanKind::kPhase, "backward", at(4), at(8))
        .main(SpanKind::kCommunication, "wait for collective", at(7), at(7.5))
        .main(SpanKind::kPhase, "optimizer", at(8), at(9))
        .main(SpanKind::kPhase, "compute", at(1.2), at(9.2))
        .main(SpanKind::kPhase, "forward", at(9.5), at(9.7))  // Within the evaluation.
        .main(SpanKind::kEvaluation, "evaluation", at(9.4), at(9.8))
        .main(SpanKind::kStep, "step", at(0), at(10), number);
  }
  builder.loader("decode", 0, 3).loader("load samples", 0, 6).loader("load samples", 9, 12);
  return builder.take(30);
}

TEST(Profile, DividesStepsIntoPhases) {
  const Profile profile = profile_of(eager_trace(), {}, {});
  EXPECT_EQ(profile.steps, 2);
  EXPECT_EQ(profile.first_step, 4);
  EXPECT_NEAR(profile.seconds, 15 * kMs, 1e-9);
  EXPECT_NEAR(profile.slowest, 20 * kMs, 1e-9);
  EXPECT_EQ(profile.slowest_step, 5);
  // Averages of 1 and 2 times these milliseconds.
  EXPECT_NEAR(phase(profile, "data wait"), 1.5 * 1 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "forward"), 1.5 * 2.5 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "backward"), 1.5 * 3.5 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "communication"), 1.5 * 0.5 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "optimizer"), 1.5 * 1 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "evaluation"), 1.5 * 0.4 * kMs, 1e-9);
  double sum = 0;
  for (const PhaseTime& one : profile.phases) sum += one.seconds;
  EXPECT_NEAR(sum, profile.seconds, 1e-12);
  EXPECT_EQ(profile.phases.front().name, "data wait");
  EXPECT_EQ(profile.phases.back().name, "host");
}

TEST(Profile, ListsOperatorsWithoutThoseWithinThem) {
  const Profile profile = profile_of(eager_trace(), {}, {});
  ASSERT_EQ(profile.operators.size(), 2U);
  EXPECT_EQ(profile.operators[0].op, "aten::convolution");
  EXPECT_NEAR(profile.operators[0].seconds, 1.5 * 0.7 * kMs, 1e-9);
  EXPECT_NEAR(profile.operators[1].seconds, 1.5 * 0.3 * kMs, 1e-9);
  EXPECT_EQ(profile.operators[1].calls, 1);
}

TEST(Profile, TellsHowBusyTheLoaderIs) {
  const Profile profile = profile_of(eager_trace(), {}, {});
  EXPECT_EQ(profile.loader.threads, 1);
  EXPECT_NEAR(profile.loader.busy, 9.0 / 30, 1e-9);
  ASSERT_EQ(profile.loader.parts.size(), 2U);
  EXPECT_EQ(profile.loader.parts[0].name, "load samples");
  EXPECT_NEAR(profile.loader.parts[0].seconds, (3 + 3) / 2.0 * kMs, 1e-9);
  EXPECT_NEAR(profile.loader.parts[1].seconds, 3 / 2.0 * kMs, 1e-9);
}

// A convolution, a loop of two layers, and an update.
Graphs graphs() {
  Graphs graphs;
  graphs[3] = {{.op = "gallop::conv2d",
                .call = "gallop::conv2d fp32 8x4",
                .format = "fp32",
                .parts = {{.phase = "forward", .layer = "conv1"}},
                .flops = 4e6,
                .needed_flops = 2e6,
                .bytes = 1000},
               {.op = "gallop::loop",
                .call = "gallop::loop{mul, add}",
                .parts = {{.phase = "backward", .layer = "conv1", .share = 0.75},
                          {.phase = "backward", .layer = "conv2", .share = 0.25}},
                .bytes = 4e6},
               {.op = "gallop::wait_tensor", .call = "gallop::wait_tensor", .communicates = true},
               {.op = "gallop::update_", .call = "gallop::update_", .bytes = 1000}};
  return graphs;
}

Trace compiled_trace() {
  TraceBuilder builder;
  builder.main(SpanKind::kOperator, "gallop::conv2d", 1, 4, 0)
      .main(SpanKind::kOperator, "gallop::loop", 4, 8, 1)
      .main(SpanKind::kOperator, "gallop::wait_tensor", 8, 9, 2)
      .main(SpanKind::kOperator, "gallop::update_", 9, 9.5, 3)
      .main(SpanKind::kPhase, "compiled graph", 1, 9.6, 3)
      .main(SpanKind::kPhase, "compute", 0.5, 9.7)
      .main(SpanKind::kStep, "step", 0, 10, 0);
  return builder.take(10);
}

const MachinePeaks kPeaks = {.flops_per_second = {{"fp32", 1e9}, {"bf16", 2e9}},
                             .bytes_per_second = {{1e6, 8e9}, {2e6, 2e9}, {1e9, 1e9}}};

TEST(Profile, AttributesNodesToPhasesAndLayers) {
  const Profile profile = profile_of(compiled_trace(), graphs(), kPeaks);
  EXPECT_NEAR(phase(profile, "forward"), 3 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "backward"), 4 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "communication"), 1 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "other"), 0.5 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "host"), 1.5 * kMs, 1e-9);
  ASSERT_EQ(profile.layers.size(), 2U);
  EXPECT_EQ(profile.layers[0].name, "conv1");
  EXPECT_NEAR(layer(profile, "conv1").forward, 3 * kMs, 1e-9);
  EXPECT_NEAR(layer(profile, "conv1").backward, 3 * kMs, 1e-9);
  EXPECT_NEAR(layer(profile, "conv2").backward, 1 * kMs, 1e-9);
  EXPECT_EQ(profile.operators[0].op, "gallop::loop");
  EXPECT_EQ(profile.operators[1].layer, "conv1");
}

TEST(Profile, ComparesWithTheLimitsOfTheMachine) {
  const Profile profile = profile_of(compiled_trace(), graphs(), kPeaks);
  // 2 MFLOP at 1 GFLOP/s; 4 MB at 2 GB/s; two times 1 kB at 8 GB/s.
  EXPECT_NEAR(profile.limit, (2 + 2) * kMs + 1000 / 8e9, 1e-9);
  EXPECT_EQ(profile.flops, 4e6);
  EXPECT_NEAR(profile.flops_utilization, 0.4, 1e-9);
  EXPECT_NEAR(layer(profile, "conv1").limit, (2 + 0.75 * 2) * kMs, 1e-9);
  EXPECT_NEAR(layer(profile, "conv1").limit_by_flops, 2 * kMs, 1e-9);
  EXPECT_NEAR(profile.operators[1].limit, 2 * kMs, 1e-9);
}

TEST(Profile, DoesNotCountCompilation) {
  TraceBuilder builder;
  builder.main(SpanKind::kPhase, "forward", 1, 3)
      .main(SpanKind::kStep, "step", 0, 4, 8)
      .main(SpanKind::kPhase, "forward", 5.5, 6)  // Part of a dry run.
      .main(SpanKind::kCompilation, "record again", 5, 11)
      .main(SpanKind::kPhase, "forward", 11, 13)
      .main(SpanKind::kStep, "step", 4, 14, 9);
  const Profile profile = profile_of(builder.take(20), {}, {});
  EXPECT_NEAR(profile.seconds, 4 * kMs, 1e-9);
  EXPECT_NEAR(profile.slowest, 4 * kMs, 1e-9);
  EXPECT_NEAR(profile.compilation, 6 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "forward"), 2 * kMs, 1e-9);
  EXPECT_NEAR(phase(profile, "host"), 2 * kMs, 1e-9);
  EXPECT_EQ(phase(profile, "compilation"), -1);
}

TEST(Profile, RefusesATraceWithoutAStep) {
  TraceBuilder builder;
  builder.main(SpanKind::kPhase, "forward", 0, 1);
  EXPECT_THROW(profile_of(builder.take(2), {}, {}), UsageError);
}

TEST(Profile, IsWrittenAsText) {
  const std::string text =
      profile_text(profile_of(compiled_trace(), graphs(), kPeaks), {.items = "images"});
  EXPECT_NE(text.find("step       10.00 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("40.0 % of the step"), std::string::npos) << text;
  EXPECT_NE(text.find("backward                  4.000   40.0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("conv1                         3.000      3.000   60.0    58 %  FLOPs\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    4.000   40.0    50 %  conv1: gallop::loop{mul, add}\n"),
            std::string::npos)
      << text;
}

TEST(Profile, IsWrittenAsJson) {
  const auto json =
      nlohmann::json::parse(profile_json(profile_of(compiled_trace(), graphs(), kPeaks), kPeaks));
  EXPECT_NEAR(json["step_ms"], 10, 1e-6);
  double sum = 0;
  for (const auto& one : json["phases"]) sum += one["ms"].get<double>();
  EXPECT_NEAR(sum, 10, 1e-6);
  EXPECT_EQ(json["layers"][0]["name"], "conv1");
  EXPECT_EQ(json["first_step"], 0);
  EXPECT_FALSE(json.contains("ranks"));
  for (const auto& [format, rate] : kPeaks.flops_per_second) {
    EXPECT_EQ(json["peaks"]["flops_per_second"][format], rate);
  }
}

TEST(Profile, ListsTheMemoryOfNodesWithTheirTimes) {
  Profile profile = profile_of(compiled_trace(), graphs(), kPeaks);
  const auto& [graph, seconds] = *profile.node_seconds.begin();
  profile.memory.graph = graph;
  for (size_t i = 0; i < seconds.size(); ++i) {
    profile.memory.at_node.push_back({.use = {.activations = 5}, .phase = "forward"});
  }
  const auto json = nlohmann::json::parse(profile_json(profile, kPeaks));
  ASSERT_EQ(json["memory"]["nodes"].size(), seconds.size());
  double sum = 0;
  for (const auto& node : json["memory"]["nodes"]) {
    EXPECT_EQ(node["activations"], 5);
    sum += node["ms"].get<double>();
  }
  EXPECT_GT(sum, 0);
}

TEST(ChromeTrace, KeepsTheLastStepsOfALongTrace) {
  const Trace trace = eager_trace();
  const auto steps_of = [](const Trace& some) {
    std::vector<int64_t> steps;
    for (const TraceEvent& event : some.threads.front().events) {
      if (event.kind == SpanKind::kStep) steps.push_back(event.number);
    }
    return steps;
  };
  EXPECT_EQ(steps_of(last_steps(trace, 1000)), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(steps_of(last_steps(trace, 20)), std::vector<int64_t>{5});
  EXPECT_EQ(steps_of(last_steps(trace, 1)), std::vector<int64_t>{5});
}

TEST(ChromeTrace, HasTheNamesThatToolsLookFor) {
  const auto json =
      nlohmann::json::parse(chrome_trace(eager_trace(), {}, {}, {.rank = 1, .processes = 2}));
  std::map<std::string, int> count;
  for (const auto& event : json["traceEvents"]) count[event["name"]] += 1;
  EXPECT_EQ(count["ProfilerStep#4"], 1);
  EXPECT_EQ(count["ProfilerStep#5"], 1);
  EXPECT_EQ(count["enumerate(DataLoader)#Loader.__next__"], 2);
  EXPECT_EQ(count["thread_name"], 2);
  EXPECT_EQ(json["distributedInfo"]["world_size"], 2);
}

TEST(ChromeTrace, DescribesTheNodesOfCompiledSteps) {
  const auto json = nlohmann::json::parse(chrome_trace(compiled_trace(), graphs(), {}, {}));
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] != "gallop::loop") continue;
    EXPECT_EQ(event["cat"], "cpu_op");
    EXPECT_NEAR(event["ts"], 4000, 1e-6);
    EXPECT_NEAR(event["dur"], 4000, 1e-6);
    EXPECT_EQ(event["args"]["layer"], "conv1");
    return;
  }
  FAIL() << "no loop";
}

TEST(ChromeTrace, CountsTheMemoryOfCompiledStepsWhereItChanges) {
  Graphs graphs = profile::graphs();
  graphs[3][0].memory = {.activations = 40, .temporaries = 8};
  graphs[3][1].memory = {.activations = 40, .temporaries = 8};
  graphs[3][2].memory = {.activations = 40, .gradients = 20};
  const auto json = nlohmann::json::parse(chrome_trace(
      compiled_trace(), graphs, {.parameters = 90, .buffers = 10, .optimizer = 200}, {}));
  std::vector<std::vector<double>> found;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], "memory");
    const auto& bytes = event["args"];
    EXPECT_EQ(bytes["parameters"], 100);
    EXPECT_EQ(bytes["optimizer"], 200);
    found.push_back({event["ts"], bytes["activations"], bytes["gradients"], bytes["temporaries"]});
  }
  // The end of the graph changes nothing more.
  EXPECT_EQ(found, (std::vector<std::vector<double>>{
                       {1000, 40, 0, 8}, {8000, 40, 20, 0}, {9000, 0, 0, 0}}));
}

TEST(ChromeTrace, CountsNoMemoryOfEagerSteps) {
  const auto json = nlohmann::json::parse(chrome_trace(eager_trace(), {}, {.parameters = 90}, {}));
  for (const auto& event : json["traceEvents"]) EXPECT_NE(event["ph"], "C");
}

TEST(Profile, AveragesCountsOverItsSteps) {
  Profile profile = profile_of(eager_trace(), {}, {});
  add_counts(profile, {.values = {{"cycles", 4e6},
                                  {"instructions", 6e6},
                                  {"llc_misses", 3e5},
                                  {"stalled_cycles_backend", 1e6},
                                  {"page_faults", 8},
                                  {"context_switches", 3},
                                  {"involuntary_context_switches", 1}},
                       .why_no_hardware = {}});
  EXPECT_EQ(profile.counts.values.at("cycles"), 2e6);
  const CounterRates rates = rates_of(profile);
  EXPECT_EQ(rates.instructions_per_cycle, 1.5);
  EXPECT_EQ(rates.stalled_backend, 0.25);
  EXPECT_FALSE(rates.stalled_frontend);
  ASSERT_TRUE(rates.llc_bytes_per_second);
  EXPECT_NEAR(*rates.llc_bytes_per_second, 1.5e5 * 64 / (15 * kMs), 1);
  const std::string text = profile_text(profile, {});
  EXPECT_NE(text.find("counters   4 page faults, 1.5 context switches (0.5 involuntary) per step\n"
                      "           1.50 instructions per cycle, 2.00 M cycles, 150,000 LLC misses "
                      "(0.64 GB/s), backend stalled 25.0 %\n"),
            std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(profile_json(profile, {}))["counters"];
  EXPECT_EQ(json["page_faults"], 4);
  EXPECT_EQ(json["instructions_per_cycle"], 1.5);
  EXPECT_FALSE(json.contains("why_no_hardware"));
}

TEST(Profile, TellsWhyThereAreNoHardwareCounters) {
  Profile profile = profile_of(eager_trace(), {}, {});
  add_counts(profile, {.values = {{"page_faults", 0}, {"cpu_migrations", 1}},
                       .why_no_hardware = "the kernel provides none"});
  const std::string text = profile_text(profile, {});
  EXPECT_NE(text.find("0.5 CPU migrations per step\n"
                      "           no hardware counters: the kernel provides none\n"),
            std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(profile_json(profile, {}))["counters"];
  EXPECT_EQ(json["why_no_hardware"], "the kernel provides none");
}

}  // namespace
}  // namespace gallop::profile

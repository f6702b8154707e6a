#include "gallop/profile/eager_steps.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "gallop/profile/profile.h"

namespace gallop::profile {
namespace {

// Spans of the training's thread, in nanoseconds.
class Steps {
 public:
  Steps& add(SpanKind kind, const std::string& name, int64_t begin, int64_t end,
             int64_t number = -1) {
    trace_.threads.front().events.push_back(
        {.name = name, .kind = kind, .number = number, .begin_ns = begin, .end_ns = end});
    return *this;
  }
  Steps& op(const std::string& name, int64_t begin, int64_t end) {
    return add(SpanKind::kOperator, name, begin, end);
  }
  Trace take() { return trace_; }

 private:
  Trace trace_{.begin_ns = 0,
               .end_ns = 1'000'000,
               .threads = {{.id = 1, .name = "gallop", .main = true, .events = {}}}};
};

// linear = t + addmm, which calls copy_; the loss; the gradient; the update.
Steps step_at(Steps steps, int64_t at, int64_t number) {
  return steps.add(SpanKind::kStep, "step", at, at + 1000, number)
      .add(SpanKind::kDataWait, "next batch", at, at + 50)
      .op("aten::copy_", at + 10, at + 20)
      .op("aten::fill_", at + 60, at + 70)
      .add(SpanKind::kPhase, "forward", at + 100, at + 400)
      .op("aten::linear", at + 110, at + 300)
      .op("aten::t", at + 120, at + 130)
      .op("aten::addmm", at + 140, at + 290)
      .op("aten::copy_", at + 150, at + 170)
      .op("aten::relu", at + 310, at + 390)
      .add(SpanKind::kPhase, "backward", at + 400, at + 700)
      .op("aten::mm", at + 410, at + 650)
      .add(SpanKind::kPhase, "optimizer", at + 700, at + 900)
      .op("aten::add_", at + 710, at + 800)
      .op("aten::copy_", at + 810, at + 890);
}

std::vector<GraphNode> recorded() {
  const auto node = [](const std::string& op, const std::string& phase, const std::string& layer) {
    return GraphNode{.op = op,
                     .call = op + " fp32",
                     .parts = {{.phase = phase, .layer = layer}},
                     .flops = op == "aten::addmm" ? 100.0 : 0.0};
  };
  return {node("aten::addmm", "forward", "fc"), node("aten::relu", "forward", "fc"),
          node("aten::mm", "backward", "fc"), node("aten::add_.Tensor", "optimizer", ""),
          node("aten::copy_", "optimizer", "")};
}

const OperatorTime* operator_of(const Profile& profile, const std::string& call) {
  const auto found = std::find_if(profile.operators.begin(), profile.operators.end(),
                                  [&](const OperatorTime& one) { return one.call == call; });
  return found == profile.operators.end() ? nullptr : &*found;
}

TEST(EagerSteps, OperatorsBecomeNodes) {
  Trace trace = step_at(step_at({}, 1000, 7), 2000, 8).take();
  ASSERT_EQ(find_nodes(trace, recorded()), "");
  const Profile profile = profile_of(trace, {{kEagerGraph, recorded()}}, {});
  ASSERT_EQ(profile.layers.size(), 2U);
  EXPECT_EQ(profile.layers[0].name, "fc");
  EXPECT_NEAR(1e9 * profile.layers[0].forward, 150 + 80, 1e-6);
  EXPECT_NEAR(1e9 * profile.layers[0].backward, 240, 1e-6);
  EXPECT_EQ(profile.layers[0].flops, 100);
  EXPECT_NEAR(1e9 * profile.layers[1].other, 90 + 80, 1e-6);
  // The operators that a node calls are part of it; those that are no nodes keep their own time.
  ASSERT_NE(operator_of(profile, "aten::addmm fp32"), nullptr);
  EXPECT_EQ(operator_of(profile, "aten::addmm fp32")->layer, "fc");
  ASSERT_NE(operator_of(profile, "aten::linear"), nullptr);
  EXPECT_NEAR(1e9 * operator_of(profile, "aten::linear")->seconds, 190 - 150 - 10, 1e-6);
  double sum = 0;
  for (const PhaseTime& phase : profile.phases) sum += phase.seconds;
  EXPECT_NEAR(sum, profile.seconds, 1e-15);
}

TEST(EagerSteps, AreLeftAloneWhereANodeIsMissing) {
  Trace trace = step_at({}, 1000, 7).take();
  const size_t events = trace.threads.front().events.size();
  std::vector<GraphNode> nodes = recorded();
  nodes[2].op = "aten::bmm";
  EXPECT_EQ(find_nodes(trace, nodes),
            "step 7 has no operator aten::bmm of fc where it was recorded");
  EXPECT_EQ(trace.threads.front().events.size(), events);
  for (const TraceEvent& event : trace.threads.front().events) {
    if (event.kind != SpanKind::kOperator) continue;
    EXPECT_EQ(event.number, -1);
  }
}

TEST(EagerSteps, PhasesDistinguishCallsOfTheSameOperator) {
  Trace trace = step_at({}, 1000, 7).take();
  // Neither the copy of the batch nor the one within addmm.
  std::vector<GraphNode> nodes = {recorded().back()};
  ASSERT_EQ(find_nodes(trace, nodes), "");
  for (const TraceEvent& event : trace.threads.front().events) {
    const bool is_found = event.name == "aten::copy_" && event.begin_ns == 1810;
    if (event.kind != SpanKind::kOperator) continue;
    EXPECT_EQ(event.number, is_found ? 0 : -1) << event.begin_ns;
  }
  nodes.front().parts.front().phase = "recomputation";
  nodes.front().op = "aten::mm";
  EXPECT_EQ(find_nodes(trace, nodes), "");  // Part of backward.
}

}  // namespace
}  // namespace gallop::profile

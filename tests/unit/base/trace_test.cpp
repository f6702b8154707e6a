#include "gallop/base/trace.h"

#include <algorithm>
#include <latch>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/thread_pool.h"

namespace gallop {
namespace {

std::vector<std::string> names_of(const ThreadTrace& thread) {
  std::vector<std::string> names;
  for (const TraceEvent& event : thread.events) names.push_back(event.name);
  return names;
}

TEST(Trace, RecordsTheSpansOfAThreadInTheOrderOfTheirEnds) {
  TraceRecorder recorder;
  {
    const TraceSpan step(SpanKind::kStep, "step", 7);
    { const TraceSpan forward(SpanKind::kPhase, "forward"); }
    { const TraceSpan backward(SpanKind::kPhase, "backward"); }
  }
  const Trace trace = recorder.stop();
  ASSERT_EQ(trace.threads.size(), 1U);
  EXPECT_TRUE(trace.threads[0].main);
  const auto& events = trace.threads[0].events;
  EXPECT_EQ(names_of(trace.threads[0]), (std::vector<std::string>{"forward", "backward", "step"}));
  EXPECT_EQ(events[2].number, 7);
  EXPECT_EQ(events[2].kind, SpanKind::kStep);
  EXPECT_EQ(events[0].number, -1);
  EXPECT_LE(trace.begin_ns, events[2].begin_ns);
  EXPECT_LE(events[2].begin_ns, events[0].begin_ns);
  EXPECT_LE(events[0].end_ns, events[1].begin_ns);
  EXPECT_LE(events[1].end_ns, events[2].end_ns);
  EXPECT_LE(events[2].end_ns, trace.end_ns);
}

TEST(Trace, RecordsOtherThreadsAndThoseThatHaveEnded) {
  TraceRecorder recorder;
  ThreadPool pool(1, "loader");
  std::latch filled(1);
  pool.submit([&] {
    { const TraceSpan span(SpanKind::kData, "decode"); }
    filled.count_down();
  });
  filled.wait();
  std::thread([] { const TraceSpan span(SpanKind::kCheckpoint, "write"); }).join();
  const Trace trace = recorder.stop();
  ASSERT_EQ(trace.threads.size(), 3U);  // This thread has no spans, but is always there.
  EXPECT_TRUE(trace.threads[0].main);
  EXPECT_TRUE(trace.threads[0].events.empty());
  const auto loader = std::find_if(trace.threads.begin(), trace.threads.end(),
                                   [](const auto& thread) { return thread.name == "loader"; });
  ASSERT_NE(loader, trace.threads.end());
  EXPECT_EQ(names_of(*loader), std::vector<std::string>{"decode"});
  EXPECT_FALSE(loader->main);
}

TEST(Trace, LeavesOutWhatBeganBeforeOrEndsAfter) {
  { const TraceSpan span(SpanKind::kPhase, "unrecorded"); }
  std::optional<TraceSpan> before(std::in_place, SpanKind::kPhase, "before");
  TraceRecorder recorder;
  { const TraceSpan span(SpanKind::kPhase, "within"); }
  record_span(SpanKind::kPhase, "early", 1, 2);
  before.reset();
  const TraceSpan after(SpanKind::kPhase, "after");
  const Trace trace = recorder.stop();
  ASSERT_EQ(trace.threads.size(), 1U);
  EXPECT_EQ(names_of(trace.threads[0]), std::vector<std::string>{"within"});
}

TEST(Trace, IsRecordedOnceAtATime) {
  {
    TraceRecorder first;
    EXPECT_THROW(TraceRecorder(), InternalError);
    EXPECT_TRUE(is_tracing());
    { const TraceSpan span(SpanKind::kPhase, "of the first"); }
    EXPECT_EQ(names_of(first.stop().threads.at(0)), std::vector<std::string>{"of the first"});
    EXPECT_FALSE(is_tracing());
    EXPECT_TRUE(first.stop().threads.empty());
  }
  TraceRecorder second;
  EXPECT_TRUE(second.stop().threads.at(0).events.empty());
}

TEST(Trace, FindsTheInnermostSpanWithoutARecorder) {
  EXPECT_EQ(TraceSpan::innermost(SpanKind::kLayer), nullptr);
  const TraceSpan block(SpanKind::kLayer, "block");
  const TraceSpan phase(SpanKind::kPhase, "forward");
  {
    const TraceSpan layer(SpanKind::kLayer, "block.conv");
    EXPECT_EQ(TraceSpan::innermost(SpanKind::kLayer)->name(), "block.conv");
    EXPECT_EQ(TraceSpan::innermost(SpanKind::kPhase)->name(), "forward");
  }
  EXPECT_EQ(TraceSpan::innermost(SpanKind::kLayer)->name(), "block");
  std::thread([] { EXPECT_EQ(TraceSpan::innermost(SpanKind::kLayer), nullptr); }).join();
}

}  // namespace
}  // namespace gallop

#include "gallop/profile/rank_times.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::profile {
namespace {

constexpr double kMs = 1e-3;
constexpr int64_t kMsNs = 1'000'000;

TraceEvent communication(int64_t begin_ms, int64_t end_ms) {
  return {.name = "all-reduce",
          .kind = SpanKind::kCommunication,
          .begin_ns = kMsNs * begin_ms,
          .end_ns = kMsNs * end_ms};
}

TEST(RankTimes, DividesCommunicationIntoExposedAndOverlapped) {
  // Two steps that wait from 6 to 8 and from 16 to 17 for what runs from 3 to 8 and 12 to 17.
  const Trace trace{
      .begin_ns = 0,
      .end_ns = 20 * kMsNs,
      .threads = {{.main = true, .events = {communication(6, 8), communication(16, 17)}},
                  {.events = {communication(3, 6), communication(12, 17)}},
                  {.events = {communication(5, 8)}}}};
  const Profile profile{.steps = 2,
                        .seconds = 10 * kMs,
                        .phases = {{"data wait", 1 * kMs},
                                   {"forward", 2 * kMs},
                                   {"backward", 4 * kMs},
                                   {"communication", 1.5 * kMs},
                                   {"evaluation", 1 * kMs},
                                   {"host", 0.5 * kMs}}};
  const RankTime time = rank_time_of(trace, profile);
  EXPECT_NEAR(time.compute, 6 * kMs, 1e-12);
  EXPECT_NEAR(time.data_wait, 1 * kMs, 1e-12);
  EXPECT_NEAR(time.exposed_communication, 1.5 * kMs, 1e-12);
  EXPECT_NEAR(time.overlapped_communication, (3 + 4) * kMs / 2, 1e-12);
  ASSERT_EQ(time.waits.size(), 2U);
  EXPECT_NEAR(time.waits[0], 2 * kMs, 1e-12);
  EXPECT_NEAR(time.first_wait_end, 8 * kMs, 1e-12);
}

TEST(RankTimes, TheLastOneIntoACollectiveWaitsLeast) {
  std::vector<RankTime> ranks = {{.rank = 0,
                                  .host = "a",
                                  .compute = 8 * kMs,
                                  .waits = {4 * kMs, 3 * kMs, 2 * kMs},
                                  .begin_ns = 100},
                                 {.rank = 1,
                                  .host = "a",
                                  .compute = 12 * kMs,
                                  .waits = {1 * kMs, 1 * kMs, 2 * kMs},
                                  .begin_ns = 600},
                                 {.rank = 2,
                                  .host = "b",
                                  .compute = 10 * kMs,
                                  .waits = {4 * kMs, 0, 2 * kMs, 9},
                                  .begin_ns = 5}};
  ranks[0].first_wait_end = 7 * kMs;
  ranks[2].first_wait_end = 5 * kMs;
  compare_ranks(ranks);
  EXPECT_EQ(ranks[0].last_into_collectives, 0);
  EXPECT_EQ(ranks[1].last_into_collectives, 0.5);  // In one of two steps with different waits.
  EXPECT_EQ(ranks[2].last_into_collectives, 0.5);
  EXPECT_NEAR(ranks[1].offset, 500e-9, 1e-15);  // By the clock of their host.
  EXPECT_NEAR(ranks[2].offset, 2 * kMs, 1e-12);
  EXPECT_NEAR(rank_skew(ranks), 0.4, 1e-12);
  EXPECT_EQ(rank_skew({ranks[0]}), 0);
}

TEST(RankTimes, AreExchangedAsText) {
  RankTime time{.rank = 3, .host = "a b", .seconds = 0.5, .compute = 0.25, .waits = {1, 2}};
  time.begin_ns = int64_t{1} << 60;
  const RankTime same = rank_time_from(to_text(time));
  EXPECT_EQ(same.rank, 3);
  EXPECT_EQ(same.host, "a b");
  EXPECT_EQ(same.compute, 0.25);
  EXPECT_EQ(same.waits, time.waits);
  EXPECT_EQ(same.begin_ns, time.begin_ns);
  EXPECT_THROW(rank_time_from("{}"), DataError);
  EXPECT_THROW(rank_time_from("no JSON"), DataError);
}

}  // namespace
}  // namespace gallop::profile

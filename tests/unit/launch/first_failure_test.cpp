#include "gallop/launch/first_failure.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>

#include <gtest/gtest.h>

namespace gallop::launch {
namespace {

Call call(int64_t number, Call::State state) {
  Call call{.number = number, .state = state, .began = 1, .ended = 1.5};
  std::snprintf(call.place, sizeof(call.place), "step %d", static_cast<int>(number / 2));
  std::snprintf(call.what, sizeof(call.what), "sum of 1.0 MiB");
  return call;
}

RankReport rank_report(int rank, std::optional<ChildEnd> end, std::vector<Call> calls) {
  return {.rank = rank, .process = 100 + rank, .end = end, .calls = std::move(calls)};
}

constexpr ChildEnd kLost{.exit_code = static_cast<int>(ExitCode::kDevice)};
const Call kFailed = call(20, Call::State::kFailed);
const Call kDone = call(19, Call::State::kDone);
const Call kUnderWay = call(20, Call::State::kUnderWay);

std::string text_of(const std::vector<RankReport>& rank_reports) {
  const auto first = first_failure(rank_reports, "of 3 on a");
  return first ? first->text : "";
}

TEST(FirstFailure, IsNoneIfAllStoppedOnRequest) {
  const ChildEnd stopped{.exit_code = static_cast<int>(ExitCode::kStopped)};
  EXPECT_FALSE(first_failure(
      {rank_report(0, stopped, {}), rank_report(1, {}, {}), rank_report(2, ChildEnd(), {})},
      "of 3"));
}

TEST(FirstFailure, IsNoneIfOthersWaitedForOneThatStoppedOnRequest) {
  const ChildEnd stopped{.exit_code = static_cast<int>(ExitCode::kStopped)};
  const RankReport waited = rank_report(1, kLost, {kDone, kFailed});
  EXPECT_FALSE(first_failure({rank_report(0, stopped, {}), waited}, "of 2"));
  const ChildEnd killed{.signal = SIGKILL};
  EXPECT_TRUE(
      first_failure({rank_report(0, stopped, {}), waited, rank_report(2, killed, {})}, "of 3"));
}

TEST(FirstFailure, IsTheKilledRankNotThoseThatWaitedForIt) {
  const ChildEnd killed{.signal = SIGKILL};
  EXPECT_EQ(
      text_of({rank_report(0, kLost, {kDone, kFailed}), rank_report(1, killed, {kDone, kUnderWay}),
               rank_report(2, {}, {kDone, kUnderWay})}),
      "rank 1 of 3 on a (process 101) was killed by SIGKILL at step 10, in call 20, sum of "
      "1.0 MiB");
}

TEST(FirstFailure, HasItsOwnExitCode) {
  const auto first = first_failure(
      {rank_report(0, kLost, {kFailed}), rank_report(1, ChildEnd{.exit_code = 3}, {kDone})},
      "of 2 on a");
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->is_inferred);
  EXPECT_EQ(first->code, ExitCode::kData);
  EXPECT_EQ(first->text,
            "rank 1 of 2 on a (process 101) ended with exit code 3 at step 9, after call 19, sum "
            "of 1.0 MiB");
}

TEST(FirstFailure, MayBeADeviceErrorInARankThatDidNotWait) {
  EXPECT_EQ(
      text_of({rank_report(0, kLost, {kFailed}), rank_report(1, kLost, {kDone})}).find("rank 1 "),
      0U);
}

TEST(FirstFailure, IsTheStoppedRank) {
  auto stopped = rank_report(2, {}, {kDone, kUnderWay});
  stopped.state = 'T';
  EXPECT_EQ(
      text_of({rank_report(0, kLost, {kDone, kFailed}), rank_report(1, {}, {kDone}), stopped}),
      "rank 2 of 3 on a (process 102) is stopped at step 10, in call 20, sum of 1.0 MiB; "
      "rank 0 waited for it at step 10, in call 20, sum of 1.0 MiB");
}

TEST(FirstFailure, IsTheRankFurthestBehind) {
  EXPECT_EQ(text_of({rank_report(0, {}, {kDone, kUnderWay}), rank_report(1, {}, {kDone}),
                     rank_report(2, kLost, {kDone, kFailed})}),
            "rank 1 of 3 on a (process 101) does not answer at step 9, after call 19, sum of 1.0 "
            "MiB; rank 2 waited for it at step 10, in call 20, sum of 1.0 MiB");
}

TEST(FirstFailure, IsInferredFromRanksThatWaited) {
  EXPECT_TRUE(first_failure({rank_report(0, kLost, {kFailed}), rank_report(1, {}, {kDone})}, "of 2")
                  ->is_inferred);
}

TEST(FirstFailure, IsOnAnotherHostIfAllOfThisHostWaited) {
  EXPECT_EQ(
      text_of({rank_report(0, kLost, {kFailed}), rank_report(1, kLost, {kFailed})}),
      "rank 0 of 3 on a (process 100) timed out waiting for others at step 10, in call 20, sum "
      "of 1.0 MiB");
}

TEST(WhoStays, IsTheRankThatStillRuns) {
  EXPECT_EQ(
      who_stays({rank_report(0, ChildEnd(), {kDone}), rank_report(1, {}, {kDone})}, "of 2 on a"),
      "rank 1 of 2 on a (process 101) does not answer at step 9, after call 19, sum of 1.0 "
      "MiB, and others have ended");
  EXPECT_EQ(who_stays({rank_report(0, ChildEnd(), {})}, "of 1"), "");
}

TEST(FirstFailure, IncludesTheLastCallsOfAllRanks) {
  EXPECT_EQ(describe_calls(
                {rank_report(0, kLost, {kDone, kFailed}), rank_report(1, {}, {kUnderWay})}, 11),
            "rank 0 (process 100) ended with exit code 4\n"
            "      10.000 s ago  call 19       step 9                       sum of 1.0 MiB"
            "           took 500.000 ms\n"
            "      10.000 s ago  call 20       step 10                      sum of 1.0 MiB"
            "           failed\n"
            "rank 1 (process 101) does not answer\n"
            "      10.000 s ago  call 20       step 10                      sum of 1.0 MiB"
            "           under way\n");
}

TEST(StateOf, IsRunningForThisProcessAndUnknownForNone) {
  EXPECT_EQ(state_of(getpid()), 'R');
  EXPECT_EQ(state_of(-5), '?');
}

}  // namespace
}  // namespace gallop::launch

#include "gallop/launch/group_thread.h"

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace gallop::launch {
namespace {

GroupEnd wait_for(GroupThread& group) {
  for (;;) {
    if (const auto end = group.end()) return *end;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

auto shells(const std::string& script) {
  return [script](const StopRequest& stop) {
    const GroupCommand command{.program = "sh",
                               .arguments = {"-c", script},
                               .processes = 2,
                               .first_rank = 2,
                               .world_size = 4};
    return run_group(command, stop, [](const std::string&) {});
  };
}

TEST(GroupThread, NamesRanksAmongAllHosts) {
  GroupThread group(shells("[ $RANK/$WORLD_SIZE/$LOCAL_RANK/$LOCAL_WORLD_SIZE != 3/4/1/2 ]"));
  const GroupEnd end = wait_for(group);
  EXPECT_EQ(end.code, ExitCode::kInternal);
  EXPECT_EQ(end.first_failure.find("rank 3 of 4 on "), 0) << end.first_failure;
}

TEST(GroupThread, IsAskedToStop) {
  GroupThread group(shells("trap 'exit 5' TERM; while :; do sleep 0.01; done"));
  EXPECT_FALSE(group.end());
  group.stop(1000);
  EXPECT_EQ(wait_for(group).code, ExitCode::kStopped);
}

TEST(GroupThread, IsKilledAfterTheShortestGrace) {
  GroupThread group(shells("trap '' TERM; while :; do sleep 0.01; done"));
  group.stop(1000);
  EXPECT_FALSE(group.end());
  group.stop(0);
  group.stop(1000);
  EXPECT_EQ(wait_for(group).code, ExitCode::kStopped);
}

TEST(GroupThread, EndsWithTheErrorThatIsThrown) {
  GroupThread group([](const StopRequest&) -> GroupEnd { throw DataError("why"); });
  const GroupEnd end = wait_for(group);
  EXPECT_EQ(end.code, ExitCode::kData);
  EXPECT_EQ(end.first_failure, "why");
}

TEST(GroupThread, LeavesNobodyBehind) {
  const GroupThread group(shells("trap '' TERM; while :; do sleep 0.01; done"));
}

}  // namespace
}  // namespace gallop::launch

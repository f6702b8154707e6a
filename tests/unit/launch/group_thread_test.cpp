#include "gallop/launch/group_thread.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"

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

/// Shells that handle signals by `signals`, and print a line before they wait for them.
class Waiting {
 public:
  explicit Waiting(const std::string& signals)
      : group(shells(signals + "; touch " + folder_.path().string() +
                     "/$RANK; while :; do sleep 0.01; done")) {
    for (const char* rank : {"2", "3"}) {
      while (!std::filesystem::exists(folder_.path() / rank)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  }

 private:
  TemporaryFolder folder_{std::filesystem::temp_directory_path(), "gallop-waiting-"};

 public:
  GroupThread group;
};

TEST(GroupThread, UsesGlobalRanks) {
  GroupThread group(shells("[ $RANK/$WORLD_SIZE/$LOCAL_RANK/$LOCAL_WORLD_SIZE != 3/4/1/2 ]"));
  const GroupEnd end = wait_for(group);
  EXPECT_EQ(end.code, ExitCode::kInternal);
  EXPECT_EQ(end.first_failure.find("rank 3 of 4 on "), 0) << end.first_failure;
}

TEST(GroupThread, StopsOnRequest) {
  Waiting waiting("trap 'exit 5' TERM");
  GroupThread& group = waiting.group;
  EXPECT_FALSE(group.end());
  group.stop(1000);
  EXPECT_EQ(wait_for(group).code, ExitCode::kStopped);
}

TEST(GroupThread, IsKilledAfterTheShortestGracePeriod) {
  Waiting waiting("trap '' TERM");
  GroupThread& group = waiting.group;
  group.stop(1000);
  EXPECT_FALSE(group.end());
  group.stop(0);
  group.stop(1000);
  EXPECT_EQ(wait_for(group).code, ExitCode::kStopped);
}

TEST(GroupThread, PropagatesErrors) {
  GroupThread group([](const StopRequest&) -> GroupEnd { throw DataError("why"); });
  const GroupEnd end = wait_for(group);
  EXPECT_EQ(end.code, ExitCode::kData);
  EXPECT_EQ(end.first_failure, "why");
}

TEST(GroupThread, LeavesNoProcessBehind) { const Waiting waiting("trap '' TERM"); }

}  // namespace
}  // namespace gallop::launch

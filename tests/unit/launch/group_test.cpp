#include "gallop/launch/group.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/base/affinity.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/launch/call_log.h"
#include "gallop/launch/reported_error.h"

namespace gallop::launch {
namespace {

/// A group of shells, and the output of all but the first.
class Shells {
 public:
  explicit Shells(int processes, const std::string& script)
      : command_({.program = "sh", .arguments = {"-c", script}, .processes = processes}) {}

  GroupEnd run() {
    const GroupEnd end =
        run_group(command_, stop, [this](const std::string& line) { lines.push_back(line); });
    std::sort(lines.begin(), lines.end());
    return end;
  }

  Shells& with_grace(double seconds) {
    command_.grace_seconds = seconds;
    return *this;
  }
  Shells& with_end(double seconds) {
    command_.end_seconds = seconds;
    return *this;
  }

  Shells& with_cause(double seconds) {
    command_.cause_seconds = seconds;
    return *this;
  }

  StopRequest stop;
  std::vector<std::string> lines;

 private:
  GroupCommand command_;
};

using Lines = std::vector<std::string>;

TEST(Group, SetsTheRankOfEachProcess) {
  Shells shells(3,
                "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT "
                "$TORCHELASTIC_RESTART_COUNT >&2");
  const GroupEnd end = shells.run();
  EXPECT_EQ(end.code, ExitCode::kDone);
  EXPECT_EQ(end.first_failure, "");
  EXPECT_EQ(shells.lines,
            (Lines{"[rank 1] 1 3 1 3 127.0.0.1 29500 0", "[rank 2] 2 3 2 3 127.0.0.1 29500 0"}));
}

TEST(Group, DividesTheCores) {
  const auto cores = static_cast<int>(cores_given().size());
  if (cores < 2) GTEST_SKIP() << "one core";
  const std::string script = "unset OMP_NUM_THREADS OMP_THREAD_LIMIT; nproc";
  Shells halves(2, script);
  halves.run();
  EXPECT_EQ(halves.lines, Lines{"[rank 1] " + std::to_string(cores - cores / 2)});
  Shells many(cores + 1, script);
  many.run();
  EXPECT_EQ(many.lines.front(), "[rank 1] " + std::to_string(cores));
}

TEST(Group, PrintsWholeLines) {
  Shells shells(2, "printf 'a'; sleep 0.1; printf 'b\\n\\nc\\033'");
  shells.run();
  EXPECT_EQ(shells.lines, (Lines{"[rank 1] ", "[rank 1] ab", "[rank 1] c?"}));
}

// Rank 0 prints its own errors.
TEST(Group, PrintsAnErrorOfSeveralRanksOnce) {
  const auto lines_of = [](const std::string& error) {
    Shells shells(4, "trap '' TERM; echo ok; error=" + error +
                         "; printf %s \"$error\" >$GALLOP_CALL_LOGS/$RANK.new; "
                         "cd $GALLOP_CALL_LOGS; mv $RANK.new $RANK.error; "
                         "until [ -e 0.error -a -e 1.error -a -e 2.error -a -e 3.error ]; "
                         "do sleep 0.01; done; echo \"gallop: $error\" >&2; exit 2");
    const GroupEnd end = shells.run();
    EXPECT_EQ(end.code, ExitCode::kUsage);
    EXPECT_FALSE(end.reported_error.empty());
    Lines errors;
    for (const std::string& line : shells.lines) {
      if (!line.ends_with("ok")) errors.push_back(line);
    }
    return errors;
  };
  EXPECT_EQ(lines_of("'no a\nno b'"), Lines());
  EXPECT_EQ(lines_of("$((RANK / 2))"), Lines{"[rank 2] gallop: 1"});
}

TEST(Group, PrintsAnErrorOfRank0ThatIsStoppedBeforeItHasPrintedIt) {
  Shells shells(3,
                "cd $GALLOP_CALL_LOGS; if [ $RANK = 0 ]; then mkfifo never; exec cat never; fi; "
                "printf 'no\\nroom' >$RANK.new; "
                "mv $RANK.new $RANK.error; exit 4");
  EXPECT_EQ(shells.run().code, ExitCode::kDevice);
  EXPECT_EQ(shells.lines, Lines{"gallop: no\nroom"});
}

// What rank 0 has recorded is printed by no other, so that it must have been printed.
TEST(ReportedError, IsPrintedFirstByRank0AndRecordedFirstByOthers) {
  const TemporaryFolder folder(std::filesystem::temp_directory_path(), "gallop-group-");
  setenv(kCallLogsVariable, folder.path().c_str(), 1);
  for (const int rank : {0, 1}) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    std::string recorded = "not printed";
    report_error("no room", [&] { recorded = read_error(folder.path(), rank); });
    EXPECT_EQ(recorded, rank == 0 ? "" : "no room");
    EXPECT_EQ(read_error(folder.path(), rank), "no room");
  }
  unsetenv("RANK");
  unsetenv(kCallLogsVariable);
}

TEST(Group, StopsTheOthersIfOneFails) {
  Shells shells(
      3, "if [ $RANK = 1 ]; then exit 3; fi; trap 'exit 5' TERM; while :; do sleep 0.01; done");
  const GroupEnd end = shells.run();
  EXPECT_EQ(end.code, ExitCode::kData);
  EXPECT_EQ(end.first_failure.find("rank 1 of 3 on "), 0) << end.first_failure;
  EXPECT_NE(end.first_failure.find(") ended with exit code 3 before its first call"),
            std::string::npos);
}

TEST(Group, ReportsTheSignalThatKilledARank) {
  Shells shells(2, "if [ $RANK = 1 ]; then kill -KILL $$; fi; exec sleep 100");
  const GroupEnd end = shells.run();
  EXPECT_EQ(end.code, ExitCode::kDevice);
  EXPECT_NE(end.first_failure.find("was killed by SIGKILL"), std::string::npos);
}

// Rank 0 has lost its connection to rank 1, whose end is noticed only after that of rank 0.
TEST(Group, FindsTheKilledRankThoughOthersEndFirst) {
  const TemporaryFolder folder(std::filesystem::temp_directory_path(), "gallop-group-");
  CallLog log(folder.path(), 0);
  log.begin(1, "step 1", "sum of 8 bytes");
  log.end(1, Call::State::kFailed);
  const std::string id = (folder.path() / "id").string();
  Shells shells(2, "if [ $RANK = 0 ]; then cp " + (folder.path() / "0").string() +
                       " $GALLOP_CALL_LOGS; echo $$ >" + id + ".new; mv " + id + ".new " + id +
                       "; exit 4; fi; until [ -e " + id + " ] && ! kill -0 $(cat " + id +
                       ") 2>/dev/null; do sleep 0.01; done; kill -KILL $$");
  const GroupEnd end = shells.with_cause(300).run();
  EXPECT_EQ(end.code, ExitCode::kDevice);
  EXPECT_NE(end.first_failure.find("was killed by SIGKILL"), std::string::npos)
      << end.first_failure;
}

TEST(Group, DoesNotWaitForARankThatHangsAtItsEnd) {
  const TemporaryFolder folder(std::filesystem::temp_directory_path(), "gallop-group-");
  const std::string id = (folder.path() / "id").string();
  Shells shells(2, "if [ $RANK = 1 ]; then echo $$ > " + id + ".new; mv " + id + ".new " + id +
                       "; kill -STOP $$; fi; until grep -qs '^State:.T' /proc/$(cat " + id +
                       " 2>/dev/null)/status; do sleep 0.01; done");
  const GroupEnd end = shells.with_grace(0.1).with_end(0.1).run();
  EXPECT_EQ(end.code, ExitCode::kDevice);
  EXPECT_NE(end.first_failure.find("is stopped before its first call, and others have ended"),
            std::string::npos)
      << end.first_failure;
}

TEST(Group, IsStoppedIfAllHaveSaved) {
  Shells shells(3, "trap 'exit 5' TERM; while :; do sleep 0.01; done");
  shells.stop.request(SIGTERM);
  const GroupEnd end = shells.run();
  EXPECT_EQ(end.code, ExitCode::kStopped);
  EXPECT_EQ(end.first_failure, "");
}

TEST(Group, IsStoppedIfOneRankWasSignaled) {
  Shells shells(
      2, "if [ $RANK = 1 ]; then exit 5; fi; trap 'exit 5' TERM; while :; do sleep 0.01; done");
  EXPECT_EQ(shells.run().code, ExitCode::kStopped);
}

TEST(Group, IsKilledAfterTheGracePeriod) {
  Shells shells(
      2,
      "trap '' TERM; if [ $RANK = 1 ]; then sleep 0.2; exit 4; fi; while :; do sleep 0.01; done");
  const GroupEnd end = shells.with_grace(0.1).run();
  EXPECT_EQ(end.code, ExitCode::kDevice);
  EXPECT_NE(end.first_failure.find("rank 1"), std::string::npos);
}

}  // namespace
}  // namespace gallop::launch

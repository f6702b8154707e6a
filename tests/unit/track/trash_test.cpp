#include "gallop/track/trash.h"

#include <gtest/gtest.h>

#include "unit/base/error_of.h"
#include "unit/track/runs_of_test.h"

namespace gallop::track {
namespace {

TEST(Trash, KeepsRunsUntilTheyAreRestored) {
  RunsOfTest runs;
  const fs::path first = runs.add("a", "{x: 1}", {});
  EXPECT_EQ(move_to_trash(first), runs.path() / ".trash" / "a");
  EXPECT_FALSE(fs::exists(first));
  runs.add("a", "{x: 2}", {});
  EXPECT_NE(error_of([&] { restore_from_trash(runs.path(), "a"); }).find("a run already exists at"),
            std::string::npos);
  EXPECT_EQ(move_to_trash(first), runs.path() / ".trash" / ".2" / "a");
  EXPECT_EQ(restore_from_trash(runs.path(), "a"), first);
  EXPECT_EQ(RunFolder::read_recipe(first), "{x: 2}");
  EXPECT_NE(error_of([&] { restore_from_trash(runs.path(), "b"); }).find("has no 'b'"),
            std::string::npos);
  EXPECT_THROW(restore_from_trash(runs.path(), "../a"), UsageError);
}

TEST(Trash, RestoresByName) {
  RunsOfTest runs;
  for (const char* name : {"lr0", "lr0.2"}) {
    move_to_trash(runs.add(name, std::string("{name: ") + name + "}", {}));
  }
  EXPECT_EQ(names_in_trash(runs.path()), (std::vector<std::string>{"lr0", "lr0.2"}));
  EXPECT_EQ(RunFolder::read_recipe(restore_from_trash(runs.path(), "lr0")), "{name: lr0}");
  EXPECT_EQ(RunFolder::read_recipe(restore_from_trash(runs.path(), "lr0.2")), "{name: lr0.2}");
  EXPECT_TRUE(names_in_trash(runs.path()).empty());
}

TEST(Trash, RestoresTheLastAfterAnEarlierOneWasPurged) {
  RunsOfTest runs;
  const fs::path first = move_to_trash(runs.add("a", "{x: 1}", {}));
  move_to_trash(runs.add("a", "{x: 2}", {}));
  fs::remove_all(first);
  move_to_trash(runs.add("a", "{x: 3}", {}));
  EXPECT_EQ(RunFolder::read_recipe(restore_from_trash(runs.path(), "a")), "{x: 3}");
}

TEST(Trash, RejectsRunsThatTrain) {
  RunsOfTest runs;
  const fs::path run = runs.add("a", "{}", {});
  const RunFolder held = RunFolder::open(run);
  EXPECT_NE(error_of([&] { move_to_trash(run); }).find("is training this run; stop it first"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(run));
}

}  // namespace
}  // namespace gallop::track

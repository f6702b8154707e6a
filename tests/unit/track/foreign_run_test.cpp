#include "gallop/track/foreign_run.h"

#include <gtest/gtest.h>

#include "gallop/track/run_summary.h"
#include "unit/track/runs_of_test.h"

namespace gallop::track {
namespace {

// Other programs take nearly any name, and any text.
TEST(ForeignRun, KeepsOptionsWhateverTheyAreCalled) {
  RunsOfTest runs;
  ForeignRun run;
  std::map<std::string, std::string> options;
  for (const char* name :
       {"a",          "a.b",    "batch-size", "learning rate", "a: b",       "- x",
        "*a",         "&b",     "{x}",        "[1]",           "#k",         "!!t",
        "?",          "%d",     "@at",        "`t`",           "null",       "true",
        "1.5",        "<<",     "=",          "---",           "it's",       "é",
        "two\nlines", "k\ttab", "\x1b[31m",   "\"quoted\"",    "back\\slash"}) {
    options[name] = std::string("value of ") + name;
  }
  options["long"] = std::string(6000, 'x');
  options["empty"] = "";
  options["blank"] = "  x ";
  options["list"] = "[1,";
  for (const auto& [name, text] : options) run.set_option(name, text);
  run.add("val-loss", 3, 1.7e9, 0.5);
  run.make(runs.path(), "one", "mlflow");
  const RunSummary summary = summarize_run(runs.path() / "one");
  EXPECT_EQ(summary.trouble, "");
  EXPECT_EQ(summary.params, options);
  EXPECT_EQ(summary.metrics.at("val-loss").last, 0.5);
}

class ForeignRunMade : public testing::Test {
 protected:
  RunSummary made(const ForeignRun& run) {
    run.make(runs_.path(), "a", "a test");
    return summarize_run(runs_.path() / "a");
  }

 private:
  RunsOfTest runs_;
};

TEST_F(ForeignRunMade, LastsFromItsFirstPointToItsLast) {
  ForeignRun run;
  run.add("loss", 1, 1000, 0.5);
  run.add("loss", 2, 1030, 0.25);
  run.set_ending(ForeignRun::Ending::kFinished);
  const RunSummary summary = made(run);
  EXPECT_EQ(summary.created, 1000);
  EXPECT_EQ(summary.seconds, 30);
}

TEST_F(ForeignRunMade, LastsAsLongAsItsProgramSays) {
  ForeignRun run;
  run.add("value", 0, 1030, 0.5);  // What a trial came to, and nothing before.
  run.set_ending(ForeignRun::Ending::kFinished);
  run.set_times(1000, 1040);
  const RunSummary summary = made(run);
  EXPECT_EQ(summary.created, 1000);
  EXPECT_EQ(summary.seconds, 40);
}

TEST_F(ForeignRunMade, HasItsTimesWithoutAPoint) {
  ForeignRun run;
  run.set_ending(ForeignRun::Ending::kStopped);
  run.set_times(1000, 1040);
  const RunSummary summary = made(run);
  EXPECT_EQ(summary.created, 1000);
  EXPECT_EQ(summary.seconds, 40);
  EXPECT_EQ(summary.state, RunState::kStopped);
}

}  // namespace
}  // namespace gallop::track

#include "gallop/track/run_locations.h"

#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>

#include "gallop/track/labels.h"
#include "gallop/track/run_index.h"
#include "gallop/track/run_summary.h"
#include "unit/base/error_of.h"
#include "unit/track/runs_of_test.h"

namespace gallop::track {
namespace {

using Names = std::vector<std::string>;

// A folder of runs, and one of sweeps with the runs of trials.
struct Folders {
  RunsOfTest runs;
  TemporaryFolder studies{fs::temp_directory_path(), "gallop-studies-"};

  fs::path add_trial(const std::string& sweep, const std::string& name, double accuracy) const {
    const fs::path folder = studies.path() / sweep / "runs";
    make_folders(folder);
    const RunFolder run = RunFolder::create(folder, name, "{}", {.started = utc_now()});
    LogWriter log(run.log(), 0, {});
    log.append({.step = 1, .kind = "evaluation", .values = {{"accuracy", accuracy}}});
    return run.path();
  }
  RunLocations locations() const { return {.runs = runs.path(), .studies = studies.path()}; }
};

Names names_of(const RunLocations& locations) {
  std::error_code error;
  Names names = locations.names(error);
  EXPECT_FALSE(error);
  return names;
}

TEST(RunLocations, IncludeTheRunsOfSweeps) {
  Folders folders;
  const fs::path run = folders.runs.add("mlp-1", "{}", {0.5});
  const fs::path trial = folders.add_trial("widths", "0007", 0.75);
  make_folders(folders.studies.path() / "of a command");
  std::ofstream(folders.studies.path() / "a file") << "no study";
  const RunLocations locations = folders.locations();
  EXPECT_EQ(names_of(locations), (Names{"mlp-1", "widths/0007"}));
  EXPECT_EQ(locations.path_of("mlp-1"), run);
  EXPECT_EQ(locations.path_of("widths/0007"), trial);
  EXPECT_EQ(locations.find("widths/0007"), trial);
  EXPECT_EQ(locations.find(trial.string()), trial);
  EXPECT_NE(error_of([&] { locations.find("widths/0008"); }).find("no run 'widths/0008'"),
            std::string::npos);
  EXPECT_EQ(names_of({.runs = folders.runs.path()}), (Names{"mlp-1"}));
  EXPECT_EQ(sweep_of("widths/0007"), "widths");
  EXPECT_EQ(sweep_of("mlp-1"), "");
}

TEST(RunLocations, NameTrialsByTheirSweep) {
  Folders folders;
  const fs::path run = folders.runs.add("7", "{}", {0.5});
  const fs::path trial = folders.add_trial("widths", "0007", 0.75);
  EXPECT_EQ(run_name_of(trial), "0007");  // Its sweep is unknown.
  for (const char* file : {"sweep.yaml", "study.db"}) {
    std::ofstream(folders.studies.path() / "widths" / file) << "something";
  }
  EXPECT_EQ(run_name_of(trial), "widths/0007");
  EXPECT_EQ(run_name_of(run), "7");
  EXPECT_EQ(summarize_run(trial).name, "widths/0007");
}

TEST(RunLocations, ListUnreadableRuns) {
  Folders folders;
  fs::permissions(folders.runs.path(), fs::perms(0755));
  const fs::path run = folders.runs.add("secret", "{}", {0.5});
  fs::permissions(run, fs::perms::none);
  const auto looks = [&] {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setuid(kNobody) != 0) return false;
    std::error_code error;
    const RunLocations locations{.runs = folders.runs.path()};
    return locations.names(error) == Names{"secret"} &&
           summarize_run(run).state == RunState::kUnreadable &&
           error_of([&] { locations.find("secret"); }).find("permission denied") !=
               std::string::npos;
  };
  EXPECT_EXIT(_exit(looks() ? 0 : 1), testing::ExitedWithCode(0), "");
  fs::permissions(run, fs::perms(0755));
}

TEST(RunLocations, MayLackRunsOrSweeps) {
  Folders folders;
  folders.add_trial("widths", "0001", 0.5);
  const RunLocations locations{.runs = "/nowhere/runs", .studies = folders.studies.path()};
  EXPECT_EQ(names_of(locations), (Names{"widths/0001"}));
  EXPECT_EQ(RunIndex(locations).rows().size(), 1);
  EXPECT_EQ(RunIndex({.runs = folders.runs.path(), .studies = "/nowhere"}).rows().size(), 0);
  EXPECT_NE(error_of([] {
              RunIndex({.runs = "/nowhere/runs", .studies = "/nowhere/studies"});
            }).find("does not exist"),
            std::string::npos);
}

TEST(RunIndex, TagsTheRunsOfSweeps) {
  Folders folders;
  folders.runs.add("mlp-1", "{}", {0.5});
  folders.add_trial("widths", "0001", 0.75);
  const fs::path renamed = folders.add_trial("widths", "0002", 0.25);
  write_labels(renamed, {.tags = {{"sweep", "mine"}}, .note = ""});
  const RunIndex index(folders.locations());
  EXPECT_EQ(index.tag("sweep"), (Column{{"widths/0001", "widths"}, {"widths/0002", "mine"}}));
  EXPECT_EQ(index.metric("accuracy").at("widths/0001"), 0.75);
  EXPECT_EQ(index.summary("widths/0001").name, "widths/0001");
  // The index without sweeps is a different one.
  EXPECT_EQ(RunIndex(folders.runs.path()).rows().size(), 1);
  EXPECT_TRUE(RunIndex(folders.runs.path()).tag_names().empty());
}

}  // namespace
}  // namespace gallop::track

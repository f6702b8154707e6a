#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "gallop/base/socket.h"
#include "gallop/tune/store.h"
#include "gallop/tune/tuner.h"
#include "unit/ui/api_of_test.h"

namespace gallop::ui::api {
namespace {

// A sweep of three trials: one of them is pruned, and the first one is the best.
void search(const fs::path& studies, const std::string& name) {
  make_folders(studies / name);
  const auto store = tune::open_store((studies / name / "study.db").string());
  tune::StudySettings settings;
  settings.name = name;
  settings.space = tune::Space({{"x", tune::Interval{.low = 0, .high = 1}}}, {});
  settings.objectives = {{.metric = "accuracy", .maximize = true}};
  settings.run = R"({"command": ["echo", "{x}"]})";
  settings.trials = 3;
  store->create(settings);
  tune::Tuner tuner(store->open(name));
  for (const double accuracy : {0.75, 0.5, 0.25}) {
    const tune::Trial trial = tuner.ask("worker").trial;
    tuner.set_run_folder(trial, studies / name / "runs" / fmt::format("{:04}", trial.number));
    tuner.report(trial, 1, accuracy / 2);
    if (accuracy < 0.4) {
      tuner.tell(trial, {.state = tune::TrialState::kPruned});
    } else {
      tuner.tell(trial, {.values = {accuracy}});
    }
  }
}

TEST_F(Api, ShowsSweeps) {
  folder.add("mlp-1", "{}", {0.5});
  EXPECT_EQ(get("sweeps").at("sweeps"), Json::array());
  search(studies.path(), "widths");
  make_folders(studies.path() / "broken");
  std::ofstream(studies.path() / "broken" / "study.db") << std::string(5000, 'x');
  const Json listed = get("sweeps").at("sweeps");
  ASSERT_EQ(listed.size(), 2);
  EXPECT_NE(listed[0].at("trouble").get<std::string>().find("study.db"), std::string::npos);
  EXPECT_EQ(listed[1].at("state"), "finished");
  EXPECT_EQ(listed[1].at("complete"), 2);
  EXPECT_EQ(listed[1].at("pruned"), 1);
  EXPECT_EQ(listed[1].at("best"), (Json{{{"trial", 0}, {"values", {0.75}}}}));
  const Json sweep = get("sweep?name=widths");
  ASSERT_EQ(sweep.at("trials").size(), 3);
  EXPECT_EQ(sweep.at("trials")[2].at("values"), Json{0.125});
  EXPECT_EQ(sweep.at("trials")[2].at("reports"), 1);
  EXPECT_EQ(sweep.at("parameters"), Json{"x"});
  const std::string command = sweep.at("best")[0].at("command");
  EXPECT_TRUE(command.starts_with("echo 0.")) << command;
  EXPECT_TRUE(text("sweep/plot.svg?name=widths&kind=history").starts_with("<svg"));
  EXPECT_EQ(error("sweep/plot.svg?name=widths&kind=none", 404), "plot 'none' does not exist");
  EXPECT_EQ(error("sweep?name=width", 404), "there is no sweep 'width'; did you mean 'widths'?");
  for (const char* name : {"../widths", "widths/", ".", "/etc"}) {
    EXPECT_TRUE(error(std::string("sweep?name=") + name, 404).starts_with("there is no sweep"));
  }
}

TEST_F(Api, QueriesASilentDatabaseOnce) {
  int reason = 0;
  const FileDescriptor silent = listen_at(resolve("127.0.0.1", 0).front(), reason);
  make_folders(studies.path() / "far");
  write_file_atomically(studies.path() / "far" / "store",
                        fmt::format("postgresql://127.0.0.1:{}/x", address_of(silent).port()));
  const Json listed = get("sweeps").at("sweeps");
  ASSERT_EQ(listed.size(), 1);
  EXPECT_EQ(listed[0].at("state"), "unreadable");
  const std::string trouble = listed[0].at("trouble");
  if (trouble.find("built without libpq") != std::string::npos) GTEST_SKIP() << trouble;
  EXPECT_NE(trouble.find("cannot be reached"), std::string::npos) << trouble;
  // The next attempt to connect is only after some time.
  pollfd connections{.fd = silent.get(), .events = POLLIN, .revents = 0};
  while (poll(&connections, 1, 0) > 0) close(accept(silent.get(), nullptr, nullptr));
  EXPECT_EQ(error("sweep?name=far", 500), trouble);
  EXPECT_EQ(get("sweeps").at("sweeps"), listed);
  EXPECT_EQ(poll(&connections, 1, 0), 0);
}

TEST_F(Api, TreatsRunsOfSweepsAsRuns) {
  search(studies.path(), "widths");
  EXPECT_FALSE(get("sweep?name=widths").at("trials")[0].contains("run"));
  const fs::path trials = studies.path() / "widths" / "runs";
  make_folders(trials);
  track::RunFolder::create(trials, "0000", "{optimizer: {lr: 0.1}}", {});
  EXPECT_EQ(get("sweep?name=widths").at("trials")[0].at("run"), "widths/0000");
  EXPECT_EQ(names_of(get("runs?filter=tags.sweep%3D%22widths%22")), (Names{"widths/0000"}));
  EXPECT_EQ(get("run?name=widths/0000").at("params")[0].at("name"), "optimizer.lr");
  EXPECT_TRUE(get("run/recipe?name=widths/0000").at("recipe").get<std::string>().find("lr") !=
              std::string::npos);
  post("note", R"({"run": "widths/0000", "text": "good"})");
  EXPECT_EQ(get("run?name=widths/0000").at("note"), "good");
  post("delete", R"({"run": "widths/0000"})");
  EXPECT_EQ(error("run?name=widths/0000", 404).substr(0, 34), "there is no run 'widths/0000'");
  EXPECT_EQ(post("restore", R"({"run": "../widths/runs/0000"})", 404).at("error"),
            "run '../widths/runs/0000' is not in the trash");
  post("restore", R"({"run": "widths/0000"})");
  EXPECT_EQ(get("run?name=widths/0000").at("note"), "good");
}

TEST_F(Api, NotifiesOfChangesOfSweeps) {
  search(studies.path(), "widths");
  Sweeps sweeps(studies.path());
  EXPECT_EQ(sweeps.take_changes(), (std::set<std::string>{"widths"}));
  EXPECT_TRUE(sweeps.take_changes().empty());
  search(studies.path(), "depths");
  EXPECT_EQ(sweeps.take_changes(), (std::set<std::string>{"depths"}));
  tune::Tuner(tune::open_store((studies.path() / "widths" / "study.db").string())->open("widths"))
      .resume(5);
  EXPECT_EQ(sweeps.take_changes(), (std::set<std::string>{"widths"}));
  fs::remove_all(studies.path() / "widths");
  EXPECT_EQ(sweeps.take_changes(), (std::set<std::string>{"widths"}));
  EXPECT_TRUE(Sweeps("/nowhere").names().empty());
}

// A second request soon after gets the cached answer, and would miss the last change.
TEST_F(Api, NotifiesOfAChangeSkippedByTheCache) {
  search(studies.path(), "widths");
  Sweeps sweeps(studies.path());
  sweeps.take_changes();
  const int64_t wanted = sweeps.study("widths")->wanted_trials();
  tune::Tuner(tune::open_store((studies.path() / "widths" / "study.db").string())->open("widths"))
      .resume(5);
  const std::set<std::string> one{"widths"};
  EXPECT_EQ(sweeps.take_changes(), one);
  if (sweeps.study("widths")->wanted_trials() == wanted) {
    while (sweeps.take_changes() != one) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  EXPECT_EQ(sweeps.study("widths")->wanted_trials(), wanted + 5);
  EXPECT_TRUE(sweeps.take_changes().empty());
}

}  // namespace
}  // namespace gallop::ui::api

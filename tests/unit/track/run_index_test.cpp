#include "gallop/track/run_index.h"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/database/sqlite.h"
#include "gallop/track/run_filter.h"
#include "unit/base/error_of.h"
#include "unit/track/runs_of_test.h"

namespace gallop::track {
namespace {

using Names = std::vector<std::string>;

Names names_of(const RunIndex& index) {
  Names names;
  for (const RunRow& row : index.rows()) names.push_back(row.name);
  return names;
}

Names chosen(const RunIndex& index, const std::string& formula) {
  const RunFilter filter(formula, index);
  Names names;
  for (const RunRow& row : index.rows()) {
    if (filter.chooses(row)) names.push_back(row.name);
  }
  return names;
}

TEST(RunSummary, HasLastMinimumAndMaximumOfEachMetric) {
  RunsOfTest folder;
  const fs::path run =
      folder.add("a", "model: {name: mlp, hidden: [64, 32]}\noptimizer: {lr: 0.1}\n",
                 {0.5, 0.9, 0.8, std::numeric_limits<double>::quiet_NaN()});
  const RunSummary summary = summarize_run(run);
  EXPECT_EQ(summary.name, "a");
  EXPECT_EQ(summary.state, RunState::kFinished);
  EXPECT_EQ(summary.steps, 40);
  EXPECT_EQ(summary.trouble, "");
  EXPECT_EQ(summary.params.at("optimizer.lr"), "0.1");
  EXPECT_EQ(summary.params.at("model.hidden"), "[64,32]");
  const MetricSummary& accuracy = summary.metrics.at("accuracy");
  EXPECT_TRUE(std::isnan(accuracy.last));
  EXPECT_EQ(accuracy.most, 0.9);
  EXPECT_EQ(accuracy.most_step, 20);
  EXPECT_EQ(accuracy.least, 0.5);
  EXPECT_EQ(accuracy.count, 4);
  EXPECT_EQ(summary.metrics.at("train.loss").least_step, 20);
}

TEST(RunSummary, ReportsDamage) {
  RunsOfTest runs;
  const fs::path died = runs.add("died", "{}", {0.5}, /*finished=*/false);
  EXPECT_EQ(summarize_run(died).state, RunState::kDied);
  {
    const RunFolder held = RunFolder::open(died);
    EXPECT_EQ(summarize_run(died).state, RunState::kTraining);
  }
  const fs::path flipped = runs.add("flipped", "{}", {0.5, 0.6});
  std::fstream(flipped / "metrics.log", std::ios::in | std::ios::out).seekp(70).put('#');
  EXPECT_EQ(summarize_run(flipped).trouble, "1 line of its log is damaged and skipped");
  EXPECT_EQ(summarize_run(flipped).state, RunState::kFinished);
  const fs::path broken = runs.add("broken", "{}", {0.5});
  std::ofstream(broken / "recipe.yaml") << "a: [";
  EXPECT_EQ(summarize_run(broken).state, RunState::kUnreadable);
  EXPECT_NE(summarize_run(broken).trouble.find("recipe.yaml"), std::string::npos);
}

TEST(RunIndex, FollowsChangesOfTheFolder) {
  RunsOfTest runs;
  EXPECT_TRUE(RunIndex(runs.path()).rows().empty());
  const fs::path a = runs.add("a", "{optimizer: {lr: 0.1}}", {0.5});
  runs.add("b", "{optimizer: {lr: 0.2}}", {0.7});
  EXPECT_EQ(names_of(RunIndex(runs.path())), (Names{"a", "b"}));
  EXPECT_EQ(RunIndex(runs.path()).metric("accuracy").at("a"), 0.5);
  LogWriter(a / "metrics.log", 10, {})
      .append({.step = 20, .kind = "evaluation", .values = {{"accuracy", 0.6}}});
  write_labels(a, {.tags = {{"kind", "baseline"}}, .note = "a note"});
  const RunIndex index(runs.path());
  EXPECT_EQ(index.metric("accuracy").at("a"), 0.6);
  EXPECT_EQ(index.tag("kind").at("a"), "baseline");
  EXPECT_EQ(index.rows()[0].note, "a note");
  EXPECT_EQ(index.rows()[0].state, RunState::kDied);
  EXPECT_EQ(index.param_names(), (Names{"optimizer.lr"}));
  fs::remove_all(runs.path() / "b");
  EXPECT_EQ(names_of(RunIndex(runs.path())), (Names{"a"}));
  EXPECT_EQ(error_of([&] { index.summary("aa1"); }).substr(0, runs.path().string().size()),
            runs.path().string());
}

TEST(RunIndex, ListsNamesThatAnyRunHas) {
  RunsOfTest runs;
  for (const char* name : {"a", "b", "c"}) runs.add(name, "{optimizer: {lr: 0.1}}", {0.5});
  write_labels(runs.path() / "c", {.tags = {{"good", ""}}, .note = ""});
  const RunIndex index(runs.path());
  const Names some = {"c", "none", "a"};
  EXPECT_EQ(index.metric("accuracy", some),
            (std::map<std::string, double>{{"a", 0.5}, {"c", 0.5}}));
  EXPECT_EQ(index.param("optimizer.lr", some), (Column{{"a", "0.1"}, {"c", "0.1"}}));
  EXPECT_EQ(index.tag("good", some), (Column{{"c", ""}}));
  EXPECT_EQ(index.metric("accuracy").size(), 3);
}

TEST(RunIndex, DetectsThatATrainingStartsAndDies) {
  RunsOfTest runs;
  const fs::path a = runs.add("a", "{}", {0.5}, /*finished=*/false);
  const auto state = [&] { return RunIndex(runs.path()).rows()[0].state; };
  EXPECT_EQ(state(), RunState::kDied);
  {
    const RunFolder held = RunFolder::open(a);
    EXPECT_EQ(state(), RunState::kTraining);
  }
  EXPECT_EQ(state(), RunState::kDied);
}

TEST(RunIndex, IsRebuiltIfMissingDamagedOrOfAnotherVersion) {
  RunsOfTest runs;
  runs.add("a", "{optimizer: {lr: 0.1}}", {0.5});
  const fs::path file = runs.path() / ".index.db";
  for (const char* damage : {"gone", "damaged", "another"}) {
    EXPECT_EQ(RunIndex(runs.path()).metric("accuracy").at("a"), 0.5);
    ASSERT_TRUE(fs::exists(file));
    for (const char* ending : {"-wal", "-shm"}) fs::remove(file.string() + ending);
    if (damage == std::string("gone")) fs::remove(file);
    if (damage == std::string("damaged")) std::ofstream(file) << std::string(5000, 'x');
    if (damage == std::string("another")) {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(60).write("\0\0\0\7", 4);  // user_version (sqlite.org/fileformat.html)
    }
  }
  EXPECT_EQ(RunIndex(runs.path()).metric("accuracy").at("a"), 0.5);
}

TEST(RunIndex, CachesTheContentOfFiles) {
  RunsOfTest runs;
  const fs::path a = runs.add("a", "{optimizer: {lr: 0.1}}", {0.5, 0.9, std::nan("")});
  write_labels(a, {.tags = {{"kind", "baseline"}}, .note = "a note"});
  const RunIndex index(runs.path());
  const RunSummary read = summarize_run(a);
  fs::remove(a / "metrics.log");
  const RunSummary known = index.summary("a");
  EXPECT_EQ(known.state, read.state);
  EXPECT_EQ(known.created, read.created);
  EXPECT_EQ(known.steps, 30);
  EXPECT_EQ(known.params, read.params);
  EXPECT_EQ(known.labels.tags, read.labels.tags);
  EXPECT_EQ(known.labels.note, "a note");
  ASSERT_EQ(known.metrics.size(), read.metrics.size());
  EXPECT_TRUE(std::isnan(known.metrics.at("accuracy").last));
  EXPECT_EQ(known.metrics.at("accuracy").most, 0.9);
  EXPECT_EQ(known.metrics.at("accuracy").most_step, 20);
  EXPECT_EQ(known.metrics.at("accuracy").count, 3);
}

TEST(RunIndex, IsInMemoryIfTheDiskIsFull) {
  RunsOfTest runs;
  runs.add("a", "{}", {0.5});
  EXPECT_EQ(RunIndex(runs.path()).rows().size(), 1);
  std::string recipe;
  for (int i = 0; i < 1000; ++i) recipe += fmt::format("option_{}: {:0100}\n", i, i);
  runs.add("b", recipe, {0.7});
  // Enough for SQLite to open the file, but not more.
  constexpr rlim_t kRoom = 1 << 15;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit full{.rlim_cur = kRoom, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const std::string error = error_of([&] {
    const RunIndex index(runs.path());
    EXPECT_EQ(names_of(index), (Names{"a", "b"}));
    EXPECT_EQ(index.metric("accuracy").at("b"), 0.7);
  });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error, "");
}

TEST(RunIndex, IsRebuiltIfDamageIsDetectedLater) {
  RunsOfTest runs;
  runs.add("a", "{}", {0.5});
  RunIndex(runs.path());
  const fs::path file = runs.path() / ".index.db";
  int64_t root = 0;
  {
    database::SqliteDatabase database(file, /*create=*/false);
    root = database.number("SELECT rootpage FROM sqlite_schema WHERE name = 'metrics'");
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  constexpr int64_t kPageBytes = 4096;
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
      .seekp((root - 1) * kPageBytes)
      .write(std::string(kPageBytes, '\xff').c_str(), kPageBytes);
  const RunIndex index(runs.path());
  EXPECT_EQ(index.metric("accuracy").at("a"), 0.5);
  EXPECT_EQ(index.metric_names(), (Names{"accuracy", "train.loss"}));
  EXPECT_EQ(RunIndex(runs.path()).summary("a").metrics.at("accuracy").last, 0.5);
}

TEST(RunIndex, RequiresAFolder) {
  EXPECT_NE(error_of([] { RunIndex("/nowhere/runs"); }).find("does not exist"), std::string::npos);
}

TEST(RunFilter, SelectsByMetricsOptionsTagsAndFields) {
  RunsOfTest runs;
  runs.add("a", "{optimizer: {name: sgd, lr: 0.1}}", {0.91});
  runs.add("b", "{optimizer: {name: adamw, lr: 0.01}}", {0.95});
  const fs::path c = runs.add("c", "{optimizer: {name: adamw}}", {}, /*finished=*/false);
  write_labels(c, {.tags = {{"good", ""}, {"team", "vision"}}});
  const RunIndex index(runs.path());
  EXPECT_EQ(chosen(index, ""), (Names{"a", "b", "c"}));
  EXPECT_EQ(chosen(index, "metrics.accuracy > 0.9 and params.optimizer.lr < 0.1"), (Names{"b"}));
  EXPECT_EQ(chosen(index, "params.optimizer.name = 'adamw'"), (Names{"b", "c"}));
  EXPECT_EQ(chosen(index, "metrics.accuracy < 1"), (Names{"a", "b"}));
  EXPECT_EQ(chosen(index, "not metrics.accuracy > 0.92"), (Names{"a", "c"}));
  EXPECT_EQ(chosen(index, "metrics.accuracy"), (Names{"a", "b"}));
  EXPECT_EQ(chosen(index, "metrics.accuracy or name == 'c'"), (Names{"a", "b", "c"}));
  EXPECT_EQ(chosen(index, "metrics.accuracy and steps"), (Names{"a", "b"}));
  EXPECT_EQ(chosen(index, "not metrics.accuracy"), (Names{"c"}));
  EXPECT_EQ(chosen(index, "tags.team == 'vision' or name == 'a'"), (Names{"a", "c"}));
  EXPECT_EQ(chosen(index, "state == 'finished' and steps >= 10"), (Names{"a", "b"}));
  EXPECT_EQ(error_of([&] { chosen(index, "metrics.acuracy > 0.9"); }),
            "no run has 'metrics.acuracy'; did you mean 'metrics.accuracy'?");
  EXPECT_NE(error_of([&] { chosen(index, "optimizer.lr > 0.9"); }).find("params.NAME"),
            std::string::npos);
  EXPECT_NE(error_of([&] { chosen(index, "metrics.accuracy >"); }).find("a value is missing"),
            std::string::npos);
}

TEST(Labels, RoundTrip) {
  RunsOfTest runs;
  const fs::path run = runs.add("a", "{}", {});
  EXPECT_TRUE(read_labels(run).tags.empty());
  write_labels(run, {.tags = {{"k", "v=w"}}, .note = "line\nand \"quotes\" ü"});
  EXPECT_EQ(read_labels(run).tags.at("k"), "v=w");
  EXPECT_EQ(read_labels(run).note, "line\nand \"quotes\" ü");
  std::ofstream(run / "labels.json") << "{";
  EXPECT_NE(error_of([&] { read_labels(run); }).find("labels.json: damaged"), std::string::npos);
  EXPECT_EQ(parse_tag("team=vision"), (std::pair<std::string, std::string>("team", "vision")));
  EXPECT_EQ(parse_tag("good"), (std::pair<std::string, std::string>("good", "")));
  EXPECT_THROW(parse_tag("=x"), UsageError);
}

TEST(Labels, KeepConcurrentChanges) {
  constexpr int kThreads = 4, kTagsOfEach = 25;
  RunsOfTest runs;
  const fs::path run = runs.add("a", "{}", {});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kTagsOfEach; ++i) {
        change_labels(run, [&](Labels& labels) {
          labels.tags[std::to_string(thread) + "-" + std::to_string(i)] = "";
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_labels(run).tags.size(), kThreads * kTagsOfEach);
}

}  // namespace
}  // namespace gallop::track

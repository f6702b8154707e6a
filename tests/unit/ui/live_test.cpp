#include "gallop/ui/live.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/database/sqlite.h"
#include "gallop/track/evaluation_report.h"
#include "gallop/track/labels.h"
#include "gallop/track/trash.h"
#include "gallop/ui/runs.h"
#include "unit/base/error_of.h"
#include "unit/track/runs_of_test.h"

namespace gallop::ui {
namespace {

using track::RunFolder;
using track::RunsOfTest;
using Names = std::set<std::string>;

TEST(RunWatch, DetectsChanges) {
  RunsOfTest runs;
  const fs::path a = runs.add("a", "{}", {0.5});
  const fs::path b = runs.add("b", "{}", {0.5});
  RunWatch watch({.runs = runs.path()});
  EXPECT_EQ(watch.look().changed, (Names{"a", "b"}));
  EXPECT_TRUE(watch.look().is_empty());
  track::LogWriter(a / "metrics.log", 10, {});
  EXPECT_EQ(watch.look().changed, (Names{"a"}));
  track::write_labels(b, {.tags = {}, .note = "a note"});
  EXPECT_EQ(watch.look().changed, (Names{"b"}));
  const fs::path report = track::evaluation_report_of(b);
  make_folders(report);
  // The clock of files may be too coarse for the next change.
  fs::last_write_time(report, fs::last_write_time(report) - std::chrono::hours(1));
  EXPECT_EQ(watch.look().changed, (Names{"b"}));
  track::write_evaluation_report(report, {.step = 10, .part = "test"});
  EXPECT_EQ(watch.look().changed, (Names{"b"}));
  EXPECT_TRUE(watch.look().is_empty());
  runs.add("c", "{}", {});
  EXPECT_EQ(watch.look().changed, (Names{"c"}));
  track::move_to_trash(b);
  const RunChanges gone = watch.look();
  EXPECT_EQ(gone.removed, (Names{"b"}));
  EXPECT_TRUE(gone.changed.empty());
}

TEST(RunWatch, DetectsThatATrainingDies) {
  RunsOfTest runs;
  const fs::path a = runs.add("a", "{}", {0.5}, /*finished=*/false);
  RunWatch watch({.runs = runs.path()});
  {
    const RunFolder held = RunFolder::open(a);
    watch.look();
    EXPECT_TRUE(watch.look().is_empty());
  }
  EXPECT_EQ(watch.look().changed, (Names{"a"}));
}

TEST(RunWatch, RequiresItsFolder) {
  EXPECT_NE(error_of([] { RunWatch({.runs = "/nowhere/runs"}).look(); }).find("cannot be read"),
            std::string::npos);
}

TEST(RunChanges, KeepTheLaterOne) {
  RunChanges changes{.changed = {"a", "b"}, .removed = {"c"}};
  changes.add({.changed = {"c"}, .removed = {"b"}});
  EXPECT_EQ(changes.changed, (Names{"a", "c"}));
  EXPECT_EQ(changes.removed, (Names{"b"}));
}

TEST(Runs, ShowRecentWrites) {
  RunsOfTest folder;
  folder.add("a", "{}", {0.5});
  Runs runs({.runs = folder.path()});
  const auto count = [&] {
    return runs.with_index([](const track::RunIndex& index) { return index.rows().size(); });
  };
  EXPECT_EQ(count(), 1);
  EXPECT_TRUE(runs.take_changes().is_empty());
  folder.add("b", "{}", {0.5});
  runs.look_again();
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(runs.take_changes().changed, (Names{"b"}));
  fs::remove(folder.path() / ".index.db");
  folder.add("c", "{}", {0.5});
  runs.look_again();
  EXPECT_EQ(count(), 3);
}

TEST(Runs, RepeatAChangeThatTheIndexDidNotKnow) {
  RunsOfTest folder;
  folder.add("a", "{}", {0.5});
  Runs runs({.runs = folder.path()}, {.between_looks = -1, .between_updates = 1e12});
  const auto count = [&] {
    return runs.with_index([](const track::RunIndex& index) { return index.rows().size(); });
  };
  EXPECT_EQ(count(), 1);
  folder.add("b", "{}", {0.5});
  EXPECT_EQ(runs.take_changes().changed, (Names{"b"}));
  EXPECT_TRUE(runs.take_changes().is_empty());
  EXPECT_EQ(count(), 1);  // It is too early for another update.
  EXPECT_TRUE(runs.take_changes().is_empty());
  runs.look_again();
  EXPECT_EQ(runs.take_changes().changed, (Names{"b"}));
  EXPECT_EQ(count(), 2);
  EXPECT_TRUE(runs.take_changes().is_empty());
}

TEST(Runs, ReturnTheOldIndexDuringALongUpdate) {
  RunsOfTest folder;
  folder.add("a", "{}", {0.5});
  Runs runs({.runs = folder.path()}, {.between_looks = -1, .between_updates = 0});
  const auto count = [&] {
    return runs.with_index([](const track::RunIndex& index) { return index.rows().size(); });
  };
  EXPECT_EQ(count(), 1);
  // The updating thread has to wait for this one.
  database::SqliteDatabase file(folder.path() / ".index.db", /*create=*/false);
  auto held = std::make_unique<database::SqliteTransaction>(file);
  folder.add("b", "{}", {0.5});
  std::atomic<int> done = 0;
  std::multiset<size_t> counts;
  std::mutex mutex;
  std::vector<std::thread> askers;
  for (int i = 0; i < 2; ++i) {
    askers.emplace_back([&] {
      const size_t found = count();
      const std::lock_guard lock(mutex);
      counts.insert(found);
      ++done;
    });
  }
  while (done == 0) std::this_thread::yield();
  held.reset();
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(counts, (std::multiset<size_t>{1, 2}));
  EXPECT_EQ(runs.take_changes().changed, (Names{"b"}));  // One of them has not received it.
}

}  // namespace
}  // namespace gallop::ui

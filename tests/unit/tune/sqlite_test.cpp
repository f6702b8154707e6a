#include "gallop/tune/storage/sqlite.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/database/sqlite.h"
#include "gallop/tune/tuner.h"
#include "unit/tune/stored_study.h"

namespace gallop::tune {
namespace {

using database::SqliteDatabase;

class Sqlite : public testing::Test {
 protected:
  void execute(const char* sql) { SqliteDatabase(path, /*create=*/false).execute(sql); }

  TemporaryFolder folder{fs::temp_directory_path(), "gallop-sqlite-"};
  fs::path path = folder.path() / "studies.db";
  std::unique_ptr<StudyStore> store = open_store(path.string());
};

TEST_F(Sqlite, KeepsAStudy) {
  store->create(stored_settings());
  std::vector<Trial> trials;
  {
    Tuner tuner(store->open("a"));
    for (int i = 0; i < 3; ++i) {
      const Trial trial = tuner.ask("w").trial;
      tuner.report(trial, 1, 0.5);
      tuner.tell(trial, {.values = {0.25}});
    }
    const Trial open = tuner.ask("w").trial;
    tuner.set_run_folder(open, "runs/\xc3\xa4 \"b\"");
    trials = tuner.study().trials();
  }
  Tuner tuner(store->open("a"));
  EXPECT_EQ(to_json(tuner.settings()), to_json(stored_settings()));
  ASSERT_EQ(tuner.study().trials().size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tuner.study().trials()[i].point, trials[i].point);
    EXPECT_EQ(tuner.study().trials()[i].losses, trials[i].losses);
    EXPECT_EQ(tuner.study().trials()[i].folder, trials[i].folder);
  }
  EXPECT_TRUE(tuner.tell(trials[3], {.values = {1}}));
}

TEST_F(Sqlite, CreatesAStudyAtomically) {
  expect_first_events_or_nothing(*store, [&] {
    execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.number = 1 "
        "BEGIN SELECT RAISE(ABORT, 'refused'); END");
  });
}

TEST_F(Sqlite, LetsOneProcessLeadAStudyAndOthersRead) {
  store->create(stored_settings("a"));
  store->create(stored_settings("b"));
  Tuner a(store->open("a")), b(store->open("b"));
  EXPECT_EQ(message<UsageError>([&] { store->open("a"); }),
            fmt::format("{}: process {} on {} already leads the study 'a'", path.string(), getpid(),
                        host_name()));
  EXPECT_NE(message<UsageError>([&] { store->remove("a"); }).find("leads"), std::string::npos);
  for (int i = 0; i < 5; ++i) {
    a.tell(a.ask("w").trial, {.values = {1}});
    b.tell(b.ask("w").trial, {.values = {2}});
    EXPECT_EQ(store->read("a").finished().size(), static_cast<size_t>(i + 1));
  }
  EXPECT_EQ(store->read("b").trials()[4].losses, std::vector<double>{2});
}

TEST_F(Sqlite, ListsAndRemovesStudies) {
  for (const char* name : {"b", "a", "c"}) store->create(stored_settings(name));
  Tuner(store->open("b")).ask("w");
  store->remove("b");
  EXPECT_EQ(store->names(), (std::vector<std::string>{"a", "c"}));
  store->create(stored_settings("b"));
  EXPECT_TRUE(store->read("b").trials().empty());
}

TEST_F(Sqlite, IsReadInAReadOnlyFolder) {
  store->create(stored_settings());
  fs::permissions(folder.path(), fs::perms(0555));
  constexpr uid_t kNobody = 65534;
  const auto read = [&] {
    if (geteuid() == 0 && setuid(kNobody) != 0) std::_Exit(2);
    const bool is_right = store->read("a").trials().empty() && store->names().size() == 1;
    std::_Exit(is_right ? 0 : 1);
  };
  EXPECT_EXIT(read(), ::testing::ExitedWithCode(0), "");
  fs::permissions(folder.path(), fs::perms(0755));
}

TEST_F(Sqlite, IsRecreatedIfItsCreatorWasKilled) {
  std::ofstream(path).close();
  EXPECT_TRUE(store->names().empty());
  store->create(stored_settings());
  EXPECT_EQ(store->names(), std::vector<std::string>{"a"});
}

TEST_F(Sqlite, ReportsMissingStudies) {
  EXPECT_EQ(message<UsageError>([&] { store->names(); }),
            fmt::format("there are no studies at '{}'", path.string()));
  EXPECT_FALSE(fs::exists(path));
  store->create(stored_settings());
  EXPECT_EQ(message<UsageError>([&] { store->read("b"); }),
            fmt::format("{} has no study 'b'", path.string()));
  EXPECT_EQ(message<UsageError>([&] { store->create(stored_settings()); }),
            fmt::format("{} already has a study 'a'", path.string()));
  for (const char* name : {"", ".a", "a/b", "a b"}) {
    EXPECT_NE(message<UsageError>([&] {
                store->create(stored_settings(name));
              }).find("is not a valid study name"),
              std::string::npos);
  }
  const auto nowhere = open_store((folder.path() / "none" / "a.db").string());
  EXPECT_NE(
      message<DeviceError>([&] { nowhere->create(stored_settings()); }).find("unable to open"),
      std::string::npos);
}

TEST_F(Sqlite, RejectsForeignFiles) {
  std::ofstream(path) << std::string(5000, 'x');
  EXPECT_EQ(message<DataError>([&] { store->names(); }),
            path.string() + ": not an SQLite database");
  EXPECT_THROW(store->create(stored_settings()), DataError);
  fs::remove(path);
  SqliteDatabase(path, /*create=*/true).execute("CREATE TABLE trials (id INTEGER)");
  EXPECT_NE(
      message<DataError>([&] { store->create(stored_settings()); }).find("of another application"),
      std::string::npos);
}

TEST_F(Sqlite, RejectsANewerFormat) {
  store->create(stored_settings());
  execute("PRAGMA user_version = 2");
  EXPECT_EQ(message<DataError>([&] { store->open("a"); }),
            path.string() +
                ": created by a newer version of Gallop (format 2; this version supports up to 1)");
}

TEST_F(Sqlite, ReportsADamagedFile) {
  store->create(stored_settings());
  {
    Tuner tuner(store->open("a"));
    for (int i = 0; i < 50; ++i) tuner.tell(tuner.ask("w").trial, {.values = {1}});
  }
  const auto open = [&] { Tuner tuner(store->open("a")); };
  const fs::path copy = folder.path() / "copy.db";
  fs::copy_file(path, copy);
  const auto damage = [&](const char* sql) {
    fs::copy_file(copy, path, fs::copy_options::overwrite_existing);
    execute(sql);
    return message<DataError>(open);
  };
  EXPECT_EQ(damage("DELETE FROM events WHERE number = 7"), path.string() + ": event 7 is missing");
  EXPECT_NE(damage("UPDATE events SET event = '{' WHERE number = 7").find(path.string()),
            std::string::npos);
  EXPECT_NE(damage("UPDATE studies SET settings = '{}'").find(path.string()), std::string::npos);
  // An end without a start.
  EXPECT_NE(damage("UPDATE events SET event = (SELECT event FROM events WHERE number = 2) "
                   "WHERE number = 1")
                .find("history of the study is damaged"),
            std::string::npos);

  fs::copy_file(copy, path, fs::copy_options::overwrite_existing);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(fs::file_size(path) - 4096, '\xff');
  file.close();
  EXPECT_NE(message<DataError>(open).find(path.string() + ": damaged: "), std::string::npos);
}

TEST_F(Sqlite, ReportsAFullDiskAndContinuesLater) {
  store->create(stored_settings());
  Tuner tuner(store->open("a"));
  const Trial trial = tuner.ask("w").trial;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{fs::file_size(path.string() + "-wal"), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string said = message<DeviceError>([&] { tuner.tell(trial, {.values = {1}}); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(said.find(path.string() + ": cannot"), std::string::npos) << said;
  EXPECT_EQ(tuner.study().running().size(), 1u);
  EXPECT_TRUE(tuner.tell(trial, {.values = {1}}));
  EXPECT_EQ(store->read("a").finished().size(), 1u);
}

TEST_F(Sqlite, KeepsEventsIfAFlushFails) {
  store->create(stored_settings());
  Tuner tuner(store->open("a"));
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int next = dup(STDIN_FILENO);  // The lowest free descriptor.
  close(next);
  const rlimit small{static_cast<rlim_t>(next), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  const std::string said = message<DeviceError>([&] { tuner.ask("w"); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_NE(said.find("-wal: cannot write"), std::string::npos) << said;
  const Trial trial = tuner.ask("w").trial;
  EXPECT_EQ(trial.number, 0);
  EXPECT_TRUE(tuner.tell(trial, {.values = {1}}));
  EXPECT_EQ(store->read("a").finished(), std::vector<int64_t>{0});
}

}  // namespace
}  // namespace gallop::tune

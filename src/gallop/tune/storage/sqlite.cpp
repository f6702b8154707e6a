#include "gallop/tune/storage/sqlite.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/device_error.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"
#include "gallop/database/sqlite.h"
#include "gallop/tune/storage/heartbeats.h"

namespace gallop::tune {

namespace {

using database::SqliteDatabase;
using database::SqliteStatement;
using database::SqliteTransaction;

// "GalT": identifies the application of a database.
constexpr int64_t kApplication = 0x47616c54;
constexpr int64_t kVersion = 1;
constexpr double kSyncSeconds = 1;
constexpr int64_t kAll = -1;  // SQLite's LIMIT value for no limit.

constexpr const char* kTables = R"(
CREATE TABLE studies (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL);
CREATE TABLE events (study INTEGER NOT NULL, number INTEGER NOT NULL, event TEXT NOT NULL,
                     PRIMARY KEY (study, number)) WITHOUT ROWID;
)";

void check_format(SqliteDatabase& database) {
  const std::string path = printable(database.path().string());
  if (database.number("PRAGMA application_id") != kApplication) {
    throw DataError(fmt::format("{}: an SQLite database of another application", path));
  }
  const int64_t version = database.number("PRAGMA user_version");
  if (version > kVersion) {
    throw DataError(fmt::format(
        "{}: created by a newer version of Gallop (format {}; this version supports up to {})",
        path, version, kVersion));
  }
}

void make_tables(SqliteDatabase& database) {
  database.execute("PRAGMA journal_mode = WAL");
  SqliteTransaction transaction(database);
  if (database.number("SELECT count(*) FROM sqlite_schema") == 0) {
    database.execute(kTables);
    database.execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplication, kVersion)
            .c_str());
  }
  transaction.commit();
}

const fs::path& existing(const fs::path& path) {
  if (fs::exists(path)) return path;
  throw UsageError(fmt::format("there are no studies at '{}'", printable(path.string())));
}

SqliteDatabase open_database(const fs::path& path) {
  SqliteDatabase database(existing(path), /*create=*/false);
  check_format(database);
  return database;
}

struct Found {
  int64_t id;
  StudySettings settings;
};

std::optional<Found> find(SqliteDatabase& database, const std::string& name) {
  SqliteStatement select(database, "SELECT id, settings FROM studies WHERE name = ?");
  select.bind(0, name);
  if (!select.step()) return std::nullopt;
  try {
    return Found{select.integer(0), parse_settings(select.text(1))};
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", printable(database.path().string()), error.what()));
  }
}

Found find_or_throw(SqliteDatabase& database, const std::string& name) {
  if (auto found = find(database, name)) return std::move(*found);
  throw UsageError(
      fmt::format("{} has no study '{}'", printable(database.path().string()), printable(name)));
}

// Passes at most `most` (or kAll) events from this index on to `take`, and returns the next index.
int64_t take_events(SqliteDatabase& database, int64_t study, int64_t number, int64_t most,
                    const Storage::Take& take) {
  SqliteStatement select(database,
                         "SELECT number, event FROM events WHERE study = ? AND number >= ? "
                         "ORDER BY number LIMIT ?");
  select.bind(0, study).bind(1, number).bind(2, most);
  while (select.step()) {
    try {
      if (select.integer(0) != number) throw DataError(fmt::format("event {} is missing", number));
      take(parse_event(select.text(1)));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", printable(database.path().string()), error.what()));
    }
    ++number;
  }
  return number;
}

FileLock take_lock(const fs::path& file, const std::string& study) {
  const fs::path path = file_beside(file, study, "lock");
  if (auto lock =
          FileLock::try_lock(path, fmt::format("process {} on {}", getpid(), host_name()))) {
    return std::move(*lock);
  }
  const std::string owner = FileLock::owner_of(path);
  throw StudyIsLed(fmt::format("{}: {} already leads the study '{}'", printable(file.string()),
                               owner.empty() ? "another process" : printable(owner), study));
}

constexpr const char* kInsertEvent = "INSERT INTO events (study, number, event) VALUES (?, ?, ?)";

void insert_events(SqliteStatement& insert, int64_t study, int64_t number,
                   const std::vector<Event>& events) {
  for (const Event& event : events) {
    insert.bind(0, study).bind(1, number++).bind(2, to_json(event)).run();
  }
}

class SqliteStorage final : public Storage {
 public:
  SqliteStorage(const fs::path& path, const std::string& name)
      : lock_(take_lock(existing(path), name)),
        database_(open_database(path)),
        study_(find_or_throw(database_, name)),
        insert_(database_, kInsertEvent),
        heartbeats_(study_.settings.heartbeat_seconds) {
    // Commits to the write-ahead log are ordered without waiting for the disk; sync() waits.
    database_.execute("PRAGMA synchronous = NORMAL");
  }
  ~SqliteStorage() override {
    if (log_) fdatasync(log_.get());
  }

  const StudySettings& settings() const override { return study_.settings; }

  void update(const Take& take, const Answer& answer) override {
    if (must_read_) read(take);
    const std::vector<Event> events = answer();
    if (events.empty()) return;
    must_read_ = true;  // If a call throws, something may have been written nevertheless.
    write(events);
    sync();
    must_read_ = false;
    next_ += static_cast<int64_t>(events.size());
    for (const Event& event : events) heartbeats_.follow(event);
  }

  std::vector<Event> events(int64_t from, int64_t most) override {
    std::vector<Event> events;
    take_events(database_, study_.id, from, most,
                [&](const Event& event) { events.push_back(event); });
    return events;
  }

  void heartbeat(const Attempt& attempt) override {
    heartbeats_.heartbeat(attempt);
    sync();
  }
  std::vector<Attempt> silent(double seconds) override { return heartbeats_.silent(seconds); }
  void flush() override { sync(); }

 private:
  void read(const Take& take) {
    next_ = take_events(database_, study_.id, next_, kAll, [&](const Event& event) {
      heartbeats_.follow(event);
      take(event);
    });
    must_read_ = false;
  }

  void write(const std::vector<Event>& events) {
    SqliteTransaction transaction(database_);
    insert_events(insert_, study_.id, next_, events);
    transaction.commit();
    is_synced_ = false;
  }

  void sync() {
    const double now = monotonic_seconds();
    if (is_synced_ || now - synced_at_ < kSyncSeconds) return;
    const fs::path path = database_.path().string() + "-wal";
    if (!log_) log_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!log_ || fdatasync(log_.get()) != 0) throw_device_error(path, "write", errno);
    is_synced_ = true;
    synced_at_ = now;
  }

  // First member: if a process on another host leads the study, the database must not be touched,
  // as its write-ahead log supports the processes of one host only.
  FileLock lock_;
  SqliteDatabase database_;
  Found study_;
  SqliteStatement insert_;
  Heartbeats heartbeats_;
  int64_t next_ = 0;  // Index of the next event.
  bool must_read_ = true;
  FileDescriptor log_;
  bool is_synced_ = true;
  double synced_at_ = 0;
};

class SqliteStore final : public StudyStore {
 public:
  explicit SqliteStore(fs::path path) : path_(std::move(path)) {}

  void create(const StudySettings& settings, const std::vector<Event>& events) override {
    check_study_name(settings.name);
    SqliteDatabase database(path_, /*create=*/true);
    if (database.number("SELECT count(*) FROM sqlite_schema") == 0) make_tables(database);
    check_format(database);
    SqliteTransaction transaction(database);
    if (find(database, settings.name)) {
      throw StudyExists(
          fmt::format("{} already has a study '{}'", printable(path_.string()), settings.name));
    }
    SqliteStatement insert(database, "INSERT INTO studies (name, settings) VALUES (?, ?)");
    insert.bind(0, settings.name).bind(1, to_json(settings)).run();
    SqliteStatement insert_event(database, kInsertEvent);
    insert_events(insert_event, database.number("SELECT last_insert_rowid()"), 0, events);
    transaction.commit();
  }

  std::unique_ptr<Storage> open(const std::string& name) override {
    check_study_name(name);
    return std::make_unique<SqliteStorage>(path_, name);
  }

  Study read(const std::string& name) override {
    SqliteDatabase database = SqliteDatabase::to_read(existing(path_));
    check_format(database);
    Found found = find_or_throw(database, name);
    Study study(std::move(found.settings));
    take_events(database, found.id, 0, kAll, [&](const Event& event) { study.apply(event); });
    return study;
  }

  std::vector<std::string> names() override {
    SqliteDatabase database = SqliteDatabase::to_read(existing(path_));
    // The process that created the file ended before it had tables.
    if (database.number("SELECT count(*) FROM sqlite_schema") == 0) return {};
    check_format(database);
    SqliteStatement select(database, "SELECT name FROM studies ORDER BY name");
    std::vector<std::string> names;
    while (select.step()) names.emplace_back(select.text(0));
    return names;
  }

  void remove(const std::string& name) override {
    check_study_name(name);
    SqliteDatabase database = open_database(path_);
    const Found found = find_or_throw(database, name);
    const FileLock lock = take_lock(path_, name);
    SqliteTransaction transaction(database);
    for (const char* sql :
         {"DELETE FROM events WHERE study = ?", "DELETE FROM studies WHERE id = ?"}) {
      SqliteStatement(database, sql).bind(0, found.id).run();
    }
    transaction.commit();
    std::error_code ignored;
    for (const char* suffix : {"address", "lock"}) {
      fs::remove(file_beside(path_, name, suffix), ignored);
    }
  }

 private:
  fs::path path_;
};

}  // namespace

std::unique_ptr<StudyStore> open_sqlite(const fs::path& path) {
  return std::make_unique<SqliteStore>(path);
}

fs::path file_beside(const fs::path& path, const std::string& study, const char* suffix) {
  return fmt::format("{}.{}.{}", path.string(), study, suffix);
}

}  // namespace gallop::tune

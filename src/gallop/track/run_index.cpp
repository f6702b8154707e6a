#include "gallop/track/run_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/database/sqlite.h"
#include "gallop/track/run_folder.h"

namespace gallop::track {

namespace {

using database::SqliteDatabase;
using database::SqliteStatement;
using database::SqliteTransaction;

constexpr const char* kFile = ".index.db";
constexpr const char* kFileWithSweeps = ".index.sweeps.db";
// "GalR"; other versions of the index are rebuilt.
constexpr int64_t kApplication = 0x47616c52;
constexpr int64_t kVersion = 2;

constexpr const char* kTables = R"(
CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL,
                   state INTEGER NOT NULL, created REAL NOT NULL, seconds REAL NOT NULL,
                   steps INTEGER NOT NULL, note TEXT NOT NULL, trouble TEXT NOT NULL);
CREATE TABLE names (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, name TEXT NOT NULL,
                    UNIQUE (kind, name));
CREATE TABLE texts (name INTEGER NOT NULL, run INTEGER NOT NULL, text TEXT NOT NULL,
                    PRIMARY KEY (name, run)) WITHOUT ROWID;
CREATE TABLE metrics (name INTEGER NOT NULL, run INTEGER NOT NULL, last REAL, least REAL,
                      most REAL, last_step INTEGER NOT NULL, least_step INTEGER NOT NULL,
                      most_step INTEGER NOT NULL, count INTEGER NOT NULL,
                      PRIMARY KEY (name, run)) WITHOUT ROWID;
CREATE INDEX texts_of_run ON texts (run);
CREATE INDEX metrics_of_run ON metrics (run);
)";

enum Kind : int64_t { kMetric, kParam, kTag };

// Changes when a file of the run does.
std::string stamp_of(const fs::path& folder) {
  return file_states({folder / "metrics.log", folder / "recipe.yaml", folder / "labels.json"});
}

}  // namespace

class RunIndex::Tables {
 public:
  explicit Tables(const fs::path& path) : database_(path, /*create=*/true) {
    database_.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    SqliteTransaction transaction(database_);
    if (database_.number("SELECT count(*) FROM sqlite_schema") == 0) {
      database_.execute(kTables);
      database_.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                    kApplication, kVersion)
                            .c_str());
    }
    transaction.commit();
    if (database_.number("PRAGMA application_id") != kApplication ||
        database_.number("PRAGMA user_version") != kVersion) {
      throw DataError("another version");
    }
  }

  SqliteDatabase& database() { return database_; }

  void remove(const std::string& name) {
    for (const char* sql : {"DELETE FROM texts WHERE run = (SELECT id FROM runs WHERE name = ?)",
                            "DELETE FROM metrics WHERE run = (SELECT id FROM runs WHERE name = ?)",
                            "DELETE FROM runs WHERE name = ?"}) {
      SqliteStatement(database_, sql).bind(0, name).run();
    }
  }

  void insert(const RunSummary& run, const std::string& stamp) {
    SqliteStatement(database_,
                    "INSERT INTO runs (name, stamp, state, created, seconds, steps, note, trouble) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(0, run.name)
        .bind(1, stamp)
        .bind(2, static_cast<int64_t>(run.state))
        .bind(3, run.created)
        .bind(4, run.seconds)
        .bind(5, run.steps)
        .bind(6, run.labels.note)
        .bind(7, run.trouble)
        .run();
    const int64_t id = database_.number("SELECT last_insert_rowid()");
    insert_texts(id, kParam, run.params);
    insert_texts(id, kTag, run.labels.tags);
    SqliteStatement statement(database_, "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const auto& [name, metric] : run.metrics) {
      statement.bind(0, id_of(kMetric, name))
          .bind(1, id)
          .bind(2, metric.last)
          .bind(3, metric.least)
          .bind(4, metric.most)
          .bind(5, metric.last_step)
          .bind(6, metric.least_step)
          .bind(7, metric.most_step)
          .bind(8, metric.count)
          .run();
    }
  }

  std::vector<std::string> names(Kind kind) {
    // One lookup per name; IN would scan the whole table.
    const std::string sql = fmt::format(
        "SELECT name FROM names WHERE kind = ? AND "
        "EXISTS (SELECT 1 FROM {0} WHERE {0}.name = names.id) ORDER BY name",
        kind == kMetric ? "metrics" : "texts");
    SqliteStatement statement(database_, sql.c_str());
    statement.bind(0, static_cast<int64_t>(kind));
    std::vector<std::string> names;
    while (statement.step()) names.emplace_back(statement.text(0));
    return names;
  }

  Column texts(Kind kind, const std::string& name, const std::vector<std::string>& runs) {
    Column column;
    const std::string sql = cells_sql("text", "texts", !runs.empty());
    for_each_cell(sql.c_str(), kind, name, runs, [&](std::string run, SqliteStatement& row) {
      column[std::move(run)] = row.text(1);
    });
    return column;
  }

  std::map<std::string, double> numbers(const std::string& name,
                                        const std::vector<std::string>& runs) {
    std::map<std::string, double> column;
    const std::string sql = cells_sql("last", "metrics", !runs.empty());
    for_each_cell(sql.c_str(), kMetric, name, runs, [&](std::string run, SqliteStatement& row) {
      column[std::move(run)] = row.real(1);
    });
    return column;
  }

  std::vector<RunRow> rows() {
    std::vector<RunRow> rows;
    SqliteStatement statement(
        database_,
        "SELECT name, state, created, seconds, steps, note, trouble FROM runs ORDER BY name");
    while (statement.step()) {
      RunRow& row = rows.emplace_back();
      row.name = statement.text(0);
      row.state = static_cast<RunState>(statement.integer(1));
      row.created = statement.real(2);
      row.seconds = statement.real(3);
      row.steps = statement.integer(4);
      row.note = statement.text(5);
      row.trouble = statement.text(6);
    }
    return rows;
  }

  // Options, tags and metrics of a run.
  void fill(RunSummary& run) {
    SqliteStatement texts(database_,
                          "SELECT names.kind, names.name, text FROM texts "
                          "JOIN names ON names.id = texts.name "
                          "WHERE run = (SELECT id FROM runs WHERE runs.name = ?)");
    texts.bind(0, run.name);
    while (texts.step()) {
      auto& named = texts.integer(0) == kParam ? run.params : run.labels.tags;
      named[std::string(texts.text(1))] = texts.text(2);
    }
    SqliteStatement metrics(
        database_,
        "SELECT names.name, last, least, most, last_step, least_step, most_step, count "
        "FROM metrics JOIN names ON names.id = metrics.name "
        "WHERE run = (SELECT id FROM runs WHERE runs.name = ?)");
    metrics.bind(0, run.name);
    while (metrics.step()) {
      run.metrics[std::string(metrics.text(0))] = {.last = metrics.real(1),
                                                   .least = metrics.real(2),
                                                   .most = metrics.real(3),
                                                   .last_step = metrics.integer(4),
                                                   .least_step = metrics.integer(5),
                                                   .most_step = metrics.integer(6),
                                                   .count = metrics.integer(7)};
    }
  }

 private:
  static std::string cells_sql(const char* value, const char* table, bool of_some) {
    return fmt::format(
        "SELECT runs.name, {0} FROM {1} JOIN runs ON runs.id = {1}.run "
        "WHERE {1}.name = (SELECT id FROM names WHERE kind = ? AND name = ?){2}",
        value, table,
        of_some ? fmt::format(" AND {}.run = (SELECT id FROM runs WHERE name = ?)", table) : "");
  }

  template <typename Visit>
  void for_each_cell(const char* sql, Kind kind, const std::string& name,
                     const std::vector<std::string>& runs, const Visit& visit) {
    SqliteStatement statement(database_, sql);
    statement.bind(0, static_cast<int64_t>(kind)).bind(1, name);
    const auto visit_rows = [&] {
      while (statement.step()) visit(std::string(statement.text(0)), statement);
    };
    if (runs.empty()) visit_rows();
    for (const std::string& run : runs) {
      statement.bind(2, run);
      visit_rows();
    }
  }

  int64_t id_of(Kind kind, const std::string& name) {
    const auto found = ids_.find({kind, name});
    if (found != ids_.end()) return found->second;
    SqliteStatement(database_, "INSERT OR IGNORE INTO names (kind, name) VALUES (?, ?)")
        .bind(0, static_cast<int64_t>(kind))
        .bind(1, name)
        .run();
    SqliteStatement statement(database_, "SELECT id FROM names WHERE kind = ? AND name = ?");
    statement.bind(0, static_cast<int64_t>(kind)).bind(1, name).step();
    return ids_[{kind, name}] = statement.integer(0);
  }

  void insert_texts(int64_t run, Kind kind, const std::map<std::string, std::string>& texts) {
    SqliteStatement statement(database_, "INSERT INTO texts VALUES (?, ?, ?)");
    for (const auto& [name, text] : texts) {
      statement.bind(0, id_of(kind, name)).bind(1, run).bind(2, text).run();
    }
  }

  SqliteDatabase database_;
  std::map<std::pair<Kind, std::string>, int64_t> ids_;
};

// Damage may only be detected on reading.
template <typename Read>
auto RunIndex::read(const Read& read) const {
  try {
    return read(*tables_);
  } catch (const DataError&) {
    remove_file();
    tables_ = open();
    return read(*tables_);
  }
}

RunIndex::RunIndex(RunLocations locations, std::shared_ptr<RunReader> reader)
    : locations_(std::move(locations)), reader_(std::move(reader)) {
  std::error_code error;
  const bool has_runs = fs::is_directory(locations_.runs, error),
             has_sweeps = locations_.has_studies();
  if (!has_runs && !has_sweeps) {
    throw UsageError(
        fmt::format("the runs folder '{}' does not exist; 'gallop train RECIPE' creates it",
                    printable(locations_.runs.string())));
  }
  file_ =
      (has_runs ? locations_.runs : locations_.studies) / (has_sweeps ? kFileWithSweeps : kFile);
  tables_ = open();
  rows_ = read([](Tables& tables) { return tables.rows(); });
}

std::unique_ptr<RunIndex::Tables> RunIndex::open() const {
  const auto opened = [&](const fs::path& file) {
    auto tables = std::make_unique<Tables>(file);
    update(*tables);
    return tables;
  };
  try {
    try {
      return opened(file_);
    } catch (const DataError&) {  // Another version, or damaged.
      remove_file();
      return opened(file_);
    }
  } catch (const DataError&) {
  } catch (const DeviceError&) {
  }
  return opened(":memory:");
}

// The index can be rebuilt from the runs.
void RunIndex::remove_file() const {
  std::error_code ignored;
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(file_.string() + end, ignored);
}

RunIndex::~RunIndex() = default;
RunIndex::RunIndex(RunIndex&&) noexcept = default;
RunIndex& RunIndex::operator=(RunIndex&&) noexcept = default;

void RunIndex::update(Tables& tables) const {
  SqliteDatabase& database = tables.database();
  std::map<std::string, std::pair<std::string, RunState>> known;
  {
    SqliteStatement statement(database, "SELECT name, stamp, state FROM runs");
    while (statement.step()) {
      known[std::string(statement.text(0))] = {std::string(statement.text(1)),
                                               static_cast<RunState>(statement.integer(2))};
    }
  }
  std::vector<std::pair<RunSummary, std::string>> changed;
  std::error_code error;
  const auto names = locations_.names(error);
  if (error) {
    throw UsageError(fmt::format("{}: cannot be read: {}", printable(locations_.runs.string()),
                                 error.message()));
  }
  for (const std::string& name : names) {
    const fs::path folder = locations_.path_of(name);
    const std::string stamp = stamp_of(folder);
    const auto found = known.find(name);
    const bool is_new = found == known.end();
    // A killed training leaves no trace in its files.
    const bool is_same =
        !is_new && found->second.first == stamp &&
        (found->second.second == RunState::kTraining) == RunFolder::is_trained(folder);
    if (!is_same) changed.emplace_back(read_summary(name), stamp);
    if (!is_new) known.erase(found);
  }
  if (!changed.empty() || !known.empty()) {
    SqliteTransaction transaction(database);
    for (const auto& [name, gone] : known) tables.remove(name);
    for (const auto& [run, stamp] : changed) {
      tables.remove(run.name);
      tables.insert(run, stamp);
    }
    transaction.commit();
  }
}

std::map<std::string, double> RunIndex::metric(const std::string& name,
                                               const std::vector<std::string>& runs) const {
  return read([&](Tables& tables) { return tables.numbers(name, runs); });
}

Column RunIndex::param(const std::string& name, const std::vector<std::string>& runs) const {
  return read([&](Tables& tables) { return tables.texts(kParam, name, runs); });
}

Column RunIndex::tag(const std::string& name, const std::vector<std::string>& runs) const {
  return read([&](Tables& tables) { return tables.texts(kTag, name, runs); });
}

std::vector<std::string> RunIndex::metric_names() const {
  return read([](Tables& tables) { return tables.names(kMetric); });
}

std::vector<std::string> RunIndex::param_names() const {
  return read([](Tables& tables) { return tables.names(kParam); });
}

std::vector<std::string> RunIndex::tag_names() const {
  return read([](Tables& tables) { return tables.names(kTag); });
}

RunSummary RunIndex::summary(const std::string& name) const {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const RunRow& row) { return row.name == name; });
  if (found == rows_.end()) {
    std::vector<std::string> names;
    for (const RunRow& row : rows_) names.push_back(row.name);
    const std::string nearest = nearest_name(name, names);
    throw UsageError(fmt::format("{} has no run '{}'{}", printable(locations_.runs.string()),
                                 printable(name),
                                 nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  }
  const RunSummary run{.name = found->name,
                       .state = found->state,
                       .created = found->created,
                       .seconds = found->seconds,
                       .steps = found->steps,
                       .labels = {.tags = {}, .note = found->note},
                       .trouble = found->trouble};
  return read([&](Tables& tables) {
    RunSummary filled = run;
    tables.fill(filled);
    return filled;
  });
}

RunSummary RunIndex::read_summary(const std::string& name) const {
  RunSummary run = reader_->read(locations_.path_of(name));
  run.name = name;
  if (const std::string sweep = sweep_of(name); !sweep.empty()) {
    run.labels.tags.emplace("sweep", sweep);
  }
  return run;
}

}  // namespace gallop::track

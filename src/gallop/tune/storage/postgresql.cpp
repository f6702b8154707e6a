#include "gallop/tune/storage/postgresql.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/tune/storage/postgresql_connection.h"

namespace gallop::tune {

namespace {

constexpr int64_t kVersion = 1;
// First key of advisory locks ("GalT"); the second is the study's id, or 0 for all.
constexpr int64_t kLock = 0x47616c54;

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS gallop_format (version integer NOT NULL);
CREATE TABLE IF NOT EXISTS gallop_studies (id serial PRIMARY KEY, name text NOT NULL UNIQUE,
                                           settings text NOT NULL);
CREATE TABLE IF NOT EXISTS gallop_events (
  study integer NOT NULL REFERENCES gallop_studies ON DELETE CASCADE, number bigint NOT NULL,
  change text NOT NULL, event text NOT NULL, PRIMARY KEY (study, number));
CREATE TABLE IF NOT EXISTS gallop_beats (
  study integer NOT NULL REFERENCES gallop_studies ON DELETE CASCADE, trial bigint NOT NULL,
  attempt integer NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (study, trial));
)";

struct Found {
  int64_t id;
  StudySettings settings;
};

// Prefixes DataErrors with the location of the damage.
template <typename Call>
auto at_place(const PostgresqlConnection& connection, const Call& call) {
  try {
    return call();
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", connection.place(), error.what()));
  }
}

void check_format(PostgresqlConnection& connection) {
  const PostgresqlRows rows = connection.run("SELECT version FROM gallop_format");
  const int64_t version = rows.size() == 0 ? 0 : rows.integer(0, 0);
  if (version > kVersion) {
    throw DataError(fmt::format(
        "{}: created by a newer version of Gallop (format {}; this version supports up to {})",
        connection.place(), version, kVersion));
  }
}

Found find(PostgresqlConnection& connection, const std::string& name) {
  check_format(connection);
  const PostgresqlRows rows = connection.run(fmt::format(
      "SELECT id, settings FROM gallop_studies WHERE name = {}", connection.literal(name)));
  if (rows.size() == 0) {
    throw UsageError(fmt::format("{} has no study '{}'", connection.place(), printable(name)));
  }
  return at_place(connection, [&] {
    return Found{rows.integer(0, 0), parse_settings(rows.text(0, 1))};
  });
}

Found keep_finding(PostgresqlConnection& connection, const std::string& name) {
  std::optional<Found> found;
  connection.keep_trying([&] { found = find(connection, name); });
  return std::move(*found);
}

// Parses a row of SELECT number, change, event, which must have this number.
Event event_of(const PostgresqlConnection& connection, const PostgresqlRows& rows, int row,
               int64_t number) {
  return at_place(connection, [&] {
    if (rows.integer(row, 0) != number) {
      throw DataError(fmt::format("event {} is missing", number));
    }
    return parse_event(rows.text(row, 2));
  });
}

std::string select_events(int64_t study, int64_t number) {
  return fmt::format(
      "SELECT number, change, event FROM gallop_events WHERE study = {} AND number >= {} "
      "ORDER BY number",
      study, number);
}

std::vector<Event> read_events(PostgresqlConnection& connection, const std::string& select,
                               int64_t number) {
  std::vector<Event> events;
  connection.keep_trying([&] {
    events.clear();
    const PostgresqlRows rows = connection.run(select);
    for (int row = 0; row < rows.size(); ++row) {
      events.push_back(event_of(connection, rows, row, number + row));
    }
  });
  return events;
}

// SQL that updates the table of heartbeats for an event.
std::string follow(int64_t study, const Event& event) {
  using Kind = Event::Kind;
  switch (event.kind) {
    case Kind::kStarted:
      return fmt::format(
          "INSERT INTO gallop_beats VALUES ({}, {}, {}, clock_timestamp()) ON CONFLICT (study, "
          "trial) DO UPDATE SET attempt = excluded.attempt, at = excluded.at; ",
          study, event.trial, event.attempt);
    case Kind::kPlaced:
    case Kind::kShared:
    case Kind::kReported:
      return fmt::format(
          "UPDATE gallop_beats SET at = clock_timestamp() WHERE study = {} AND trial = {}; ", study,
          event.trial);
    case Kind::kFinished:
    case Kind::kRequeued:
    case Kind::kVanished:
      return fmt::format("DELETE FROM gallop_beats WHERE study = {} AND trial = {}; ", study,
                         event.trial);
    case Kind::kQueued:
    case Kind::kStopped:
    case Kind::kResumed: return {};
  }
  return {};
}

// Rolls back a transaction whose statements fail, so that the next one can begin.
template <typename Call>
void leave_at_failure(PostgresqlConnection& connection, const Call& call) {
  try {
    call();
  } catch (const PostgresqlLost&) {
    throw;
  } catch (...) {
    try {
      connection.run("ROLLBACK");
    } catch (const std::exception&) {
      // The transaction ended with the connection.
    }
    throw;
  }
}

// SQL that appends events, at least one, to those of a study.
std::string insert_events(PostgresqlConnection& connection, int64_t study, int64_t number,
                          const std::string& change, const std::vector<Event>& events) {
  std::string values, signs;
  for (const Event& event : events) {
    values += fmt::format("{}({}, {}, '{}', {})", values.empty() ? "" : ", ", study, number++,
                          change, connection.literal(to_json(event)));
    signs += follow(study, event);
  }
  return fmt::format("INSERT INTO gallop_events (study, number, change, event) VALUES {}; {}",
                     values, signs);
}

// Names of changes are random, so that they are unique.
std::string random_name() {
  return fmt::format("{:08x}{:08x}", std::random_device()(), std::random_device()());
}

class PostgresqlStorage final : public Storage {
 public:
  PostgresqlStorage(const std::string& url, const std::string& name,
                    const PostgresqlPatience& patience)
      : connection_(url, patience),
        study_(keep_finding(connection_, name)),
        writer_(random_name()) {}

  const StudySettings& settings() const override { return study_.settings; }

  void update(const Take& take, const Answer& answer) override {
    Change change{.name = fmt::format("{}-{}", writer_, changes_++)};
    connection_.keep_trying(
        [&] { leave_at_failure(connection_, [&] { try_update(take, answer, change); }); });
  }

  void heartbeat(const Attempt& attempt) override {
    connection_.keep_trying([&] {
      connection_.run(
          fmt::format("UPDATE gallop_beats SET at = clock_timestamp() WHERE study = {} "
                      "AND trial = {} AND attempt = {}",
                      study_.id, attempt.trial, attempt.attempt));
    });
  }

  std::vector<Event> events(int64_t from, int64_t most) override {
    return read_events(connection_,
                       fmt::format("{} LIMIT {}", select_events(study_.id, from), most), from);
  }

  std::vector<Attempt> silent(double seconds) override {
    std::vector<Attempt> silent;
    if (connection_.seconds_since_outage() < seconds) return silent;
    connection_.keep_trying([&] {
      silent.clear();
      const PostgresqlRows rows = connection_.run(fmt::format(
          "SELECT trial, attempt FROM gallop_beats WHERE study = {} AND "
          "greatest(at, pg_postmaster_start_time()) < clock_timestamp() - {} * interval '1 s' "
          "ORDER BY trial",
          study_.id, seconds));
      for (int row = 0; row < rows.size(); ++row) {
        silent.push_back({rows.integer(row, 0), static_cast<int32_t>(rows.integer(row, 1))});
      }
    });
    return silent;
  }

 private:
  // A change that was sent, and may have been committed without a reply.
  struct Change {
    std::string name;
    size_t events = 0;
  };

  void try_update(const Take& take, const Answer& answer, Change& change) {
    const PostgresqlRows rows =
        connection_.run(fmt::format("BEGIN; SELECT pg_advisory_xact_lock({}, {}); {}", kLock,
                                    study_.id, select_events(study_.id, next_)));
    for (int row = 0; row < rows.size(); ++row) {
      const Event event = event_of(connection_, rows, row, next_);
      if (rows.text(row, 1) == change.name) {
        // It was committed, and no other process wrote before it.
        next_ += static_cast<int64_t>(change.events);
        connection_.run("ROLLBACK");
        return;
      }
      ++next_;
      at_place(connection_, [&] { take(event); });
    }
    write(answer(), change);
  }

  void write(const std::vector<Event>& events, Change& change) {
    if (events.empty()) {
      connection_.run("ROLLBACK");
      return;
    }
    change.events = events.size();
    connection_.run(insert_events(connection_, study_.id, next_, change.name, events) + "COMMIT");
    next_ += static_cast<int64_t>(events.size());
  }

  PostgresqlConnection connection_;
  Found study_;
  std::string writer_;
  int64_t changes_ = 0;
  int64_t next_ = 0;  // Index of the next event.
};

class PostgresqlStore final : public StudyStore {
 public:
  PostgresqlStore(const std::string& url, const PostgresqlPatience& patience)
      : url_(url), goes_on_(patience.goes_on), connection_(url, patience) {}

  void create(const StudySettings& settings, const std::vector<Event>& events) override {
    check_study_name(settings.name);
    int tries = 0;
    connection_.keep_trying([&] {
      ++tries;
      make_tables();
      check_format(connection_);
      // An identical study may be that of an attempt whose reply was lost.
      if (!insert(settings, events) &&
          (tries == 1 || to_json(find(connection_, settings.name).settings) != to_json(settings))) {
        throw StudyExists(
            fmt::format("{} already has a study '{}'", connection_.place(), settings.name));
      }
    });
  }

  std::unique_ptr<Storage> open(const std::string& name) override {
    return std::make_unique<PostgresqlStorage>(url_, name, PostgresqlPatience{.goes_on = goes_on_});
  }

  Study read(const std::string& name) override {
    std::unique_ptr<Study> study;
    connection_.keep_trying([&] {
      Found found = find(connection_, name);
      study = std::make_unique<Study>(std::move(found.settings));
      const PostgresqlRows rows = connection_.run(select_events(found.id, 0));
      for (int row = 0; row < rows.size(); ++row) {
        const Event event = event_of(connection_, rows, row, row);
        at_place(connection_, [&] { study->apply(event); });
      }
    });
    return std::move(*study);
  }

  std::vector<std::string> names() override {
    std::vector<std::string> names;
    connection_.keep_trying([&] {
      names.clear();
      if (!has_tables()) return;
      check_format(connection_);
      const PostgresqlRows rows =
          connection_.run("SELECT name FROM gallop_studies ORDER BY name COLLATE \"C\"");
      for (int row = 0; row < rows.size(); ++row) names.emplace_back(rows.text(row, 0));
    });
    return names;
  }

  void remove(const std::string& name) override {
    const Found found = keep_finding(connection_, name);
    connection_.keep_trying([&] {
      connection_.run(fmt::format("DELETE FROM gallop_studies WHERE id = {}", found.id));
    });
  }

 private:
  // False for a database without any studies so far.
  bool has_tables() {
    return connection_.run("SELECT to_regclass('gallop_format') IS NOT NULL").text(0, 0) == "t";
  }

  // False if there already is a study of this name.
  bool insert(const StudySettings& settings, const std::vector<Event>& events) {
    bool is_new = false;
    leave_at_failure(connection_, [&] {
      const PostgresqlRows made = connection_.run(
          fmt::format("BEGIN; INSERT INTO gallop_studies (name, settings) VALUES ({}, {}) "
                      "ON CONFLICT (name) DO NOTHING RETURNING id",
                      connection_.literal(settings.name), connection_.literal(to_json(settings))));
      is_new = made.size() > 0;
      std::string rest = "COMMIT";
      if (is_new && !events.empty()) {
        rest = insert_events(connection_, made.integer(0, 0), 0, random_name(), events) + rest;
      }
      connection_.run(rest);
    });
    return is_new;
  }

  void make_tables() {
    connection_.run(fmt::format(
        "BEGIN; SELECT pg_advisory_xact_lock({}, 0); {} INSERT INTO gallop_format SELECT {} WHERE "
        "NOT EXISTS (SELECT FROM gallop_format); COMMIT",
        kLock, kTables, kVersion));
  }

  std::string url_;
  std::function<bool()> goes_on_;
  PostgresqlConnection connection_;
};

}  // namespace

std::unique_ptr<StudyStore> open_postgresql(const std::string& url, const Patience& patience) {
  const double seconds = patience.seconds;
  PostgresqlPatience of_server;
  if (seconds > 0) {
    of_server = {.first = seconds,
                 .again = seconds,
                 .answer = seconds,
                 .handshake = std::max(1, static_cast<int>(seconds))};
  }
  of_server.goes_on = patience.goes_on;
  return std::make_unique<PostgresqlStore>(url, of_server);
}

}  // namespace gallop::tune

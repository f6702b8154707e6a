#include "gallop/tune/storage/optuna_export.h"

#include <cmath>
#include <ctime>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/database/sqlite.h"

namespace gallop::tune {

namespace {

using database::SqliteDatabase;
using database::SqliteStatement;
using database::SqliteTransaction;

using Json = nlohmann::ordered_json;

// The schema of Optuna 5.0 after its migrations.
constexpr const char* kTables = R"(
CREATE TABLE studies (study_id INTEGER NOT NULL, study_name VARCHAR(512) NOT NULL, PRIMARY KEY (study_id));
CREATE TABLE version_info (version_info_id INTEGER NOT NULL, schema_version INTEGER,
  library_version VARCHAR(256), PRIMARY KEY (version_info_id), CHECK (version_info_id=1));
CREATE TABLE study_directions (study_direction_id INTEGER NOT NULL, direction VARCHAR(8) NOT NULL,
  study_id INTEGER NOT NULL, objective INTEGER NOT NULL, PRIMARY KEY (study_direction_id),
  UNIQUE (study_id, objective), FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE study_user_attributes (study_user_attribute_id INTEGER NOT NULL, study_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (study_user_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE study_system_attributes (study_system_attribute_id INTEGER NOT NULL, study_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (study_system_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE trials (trial_id INTEGER NOT NULL, number INTEGER, study_id INTEGER, state VARCHAR(8) NOT NULL,
  datetime_start DATETIME, datetime_complete DATETIME, PRIMARY KEY (trial_id),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE trial_user_attributes (trial_user_attribute_id INTEGER NOT NULL, trial_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (trial_user_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_system_attributes (trial_system_attribute_id INTEGER NOT NULL, trial_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (trial_system_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_params (param_id INTEGER NOT NULL, trial_id INTEGER, param_name VARCHAR(512),
  param_value FLOAT, distribution_json TEXT, PRIMARY KEY (param_id), UNIQUE (trial_id, param_name),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_values (trial_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL,
  objective INTEGER NOT NULL, value FLOAT, value_type VARCHAR(7) NOT NULL, PRIMARY KEY (trial_value_id),
  UNIQUE (trial_id, objective), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_intermediate_values (trial_intermediate_value_id INTEGER NOT NULL,
  trial_id INTEGER NOT NULL, step INTEGER NOT NULL, intermediate_value FLOAT,
  intermediate_value_type VARCHAR(7) NOT NULL, PRIMARY KEY (trial_intermediate_value_id),
  UNIQUE (trial_id, step), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_heartbeats (trial_heartbeat_id INTEGER NOT NULL, trial_id INTEGER NOT NULL,
  heartbeat DATETIME NOT NULL, PRIMARY KEY (trial_heartbeat_id), UNIQUE (trial_id),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,
  CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
INSERT INTO version_info VALUES (1, 12, '5.0.0');
INSERT INTO alembic_version VALUES ('v3.2.0.a');
)";

constexpr int64_t kStudy = 1;

const char* optuna_state(TrialState state) {
  switch (state) {
    case TrialState::kWaiting: return "WAITING";
    case TrialState::kRunning: return "RUNNING";
    case TrialState::kComplete: return "COMPLETE";
    case TrialState::kPruned: return "PRUNED";
    case TrialState::kFailed: return "FAIL";
  }
  return "";
}

std::string distribution(const Interval& interval) {
  const bool is_log =
      (interval.scale == Scale::kLog || interval.scale == Scale::kLogNormal) && interval.low > 0;
  const bool has_step = interval.step > 0 && !is_log;
  // Optuna requires the upper bound to be a value.
  const double high = nearest_value(interval, interval.high);
  Json attributes;
  if (interval.integer) {
    attributes = {{"log", is_log},
                  {"step", has_step ? static_cast<int64_t>(interval.step) : 1},
                  {"low", static_cast<int64_t>(interval.low)},
                  {"high", static_cast<int64_t>(high)}};
  } else {
    attributes = {{"step", has_step ? Json(interval.step) : Json()},
                  {"low", interval.low},
                  {"high", high},
                  {"log", is_log}};
  }
  return Json{{"name", interval.integer ? "IntDistribution" : "FloatDistribution"},
              {"attributes", attributes}}
      .dump();
}

std::string distribution(const Choices& choices) {
  Json values = Json::array();
  for (const std::string& text : choices.values) {
    Json value = Json::parse(text);
    values.push_back(value.is_structured() ? Json(text) : std::move(value));
  }
  return Json{{"name", "CategoricalDistribution"}, {"attributes", {{"choices", std::move(values)}}}}
      .dump();
}

// UTC with microseconds.
std::string date(double seconds) {
  const auto microseconds = static_cast<int64_t>(std::llround(seconds * 1e6));
  const auto whole = static_cast<std::time_t>(microseconds / 1'000'000);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}", fmt::gmtime(whole), microseconds % 1'000'000);
}

class Writer {
 public:
  Writer(SqliteDatabase& database, const Study& study) : database_(database), study_(study) {
    for (const Parameter& parameter : study.space().parameters()) {
      distributions_.push_back(parameter.interval() != nullptr
                                   ? distribution(*parameter.interval())
                                   : distribution(*parameter.choices()));
    }
  }

  void write_study() {
    SqliteStatement(database_, "INSERT INTO studies VALUES (?, ?)")
        .bind(0, kStudy)
        .bind(1, study_.settings().name)
        .run();
    Json metrics = Json::array();
    int64_t objective = 0;
    for (const Objective& one : study_.settings().objectives) {
      SqliteStatement(database_,
                      "INSERT INTO study_directions (direction, study_id, objective) "
                      "VALUES (?, ?, ?)")
          .bind(0, one.maximize ? "MAXIMIZE" : "MINIMIZE")
          .bind(1, kStudy)
          .bind(2, objective++)
          .run();
      metrics.push_back(one.metric);
    }
    SqliteStatement(database_,
                    "INSERT INTO study_system_attributes (study_id, key, value_json) "
                    "VALUES (?, 'study:metric_names', ?)")
        .bind(0, kStudy)
        .bind(1, metrics.dump())
        .run();
  }

  void write(const Trial& trial) {
    const int64_t id = trial.number + 1;
    trial_.bind(0, id).bind(1, trial.number).bind(2, kStudy).bind(3, optuna_state(trial.state));
    bind_date(4, trial.started);
    bind_date(5, trial.is_finished() ? trial.ended : 0);
    trial_.run();
    for (size_t i = 0; i < trial.point.size(); ++i) {
      if (std::isnan(trial.point[i])) continue;
      parameter_.bind(0, id)
          .bind(1, study_.space()[i].name)
          .bind(2, trial.point[i])
          .bind(3, distributions_[i])
          .run();
    }
    write_values(id, trial);
    for (const Report& report : trial.reports) {
      report_.bind(0, id).bind(1, report.step);
      bind_number(report_, 2, objective(0).signed_value(report.reported));
      report_.run();
    }
    write_attributes(id, trial);
  }

 private:
  const Objective& objective(size_t index) const { return study_.settings().objectives[index]; }

  void bind_date(int parameter, double seconds) {
    if (seconds == 0) {
      trial_.bind_null(parameter);
    } else {
      trial_.bind(parameter, date(seconds));
    }
  }

  // Binds a number and, as the next parameter, its type.
  static void bind_number(SqliteStatement& statement, int parameter, double number) {
    if (std::isfinite(number)) {
      statement.bind(parameter, number).bind(parameter + 1, "FINITE");
      return;
    }
    statement.bind_null(parameter);
    statement.bind(parameter + 1, std::isnan(number) ? "NAN" : number > 0 ? "INF_POS" : "INF_NEG");
  }

  void write_values(int64_t id, const Trial& trial) {
    std::vector<double> losses = trial.losses;
    // Optuna uses the last report of a pruned trial as its value.
    if (trial.state == TrialState::kPruned && !trial.reports.empty() &&
        !std::isnan(trial.reports.back().loss)) {
      losses = {trial.reports.back().loss};
    }
    for (size_t i = 0; i < losses.size(); ++i) {
      value_.bind(0, id).bind(1, static_cast<int64_t>(i));
      bind_number(value_, 2, objective(i).signed_value(losses[i]));
      value_.run();
    }
  }

  void write_attributes(int64_t id, const Trial& trial) {
    const auto put = [&](const char* key, const Json& value) {
      attribute_.bind(0, id)
          .bind(1, key)
          .bind(2, value.dump(-1, ' ', false, Json::error_handler_t::replace))
          .run();
    };
    put("attempts", trial.attempt);
    put("bracket", trial.bracket);
    if (!trial.worker.empty()) put("worker", trial.worker);
    if (!trial.folder.empty()) put("folder", trial.folder);
    if (!trial.message.empty()) put("message", trial.message);
    if (trial.parent >= 0) put("parent", trial.parent);
    for (size_t i = 0; i < trial.violations.size(); ++i) {
      const std::string key = "constraints:" + study_.settings().limits[i].metric;
      constraint_.bind(0, id).bind(1, key).bind(2, Json(trial.violations[i]).dump()).run();
    }
  }

  SqliteDatabase& database_;
  const Study& study_;
  std::vector<std::string> distributions_;
  SqliteStatement trial_{database_, "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?)"};
  SqliteStatement parameter_{database_,
                             "INSERT INTO trial_params (trial_id, param_name, param_value, "
                             "distribution_json) VALUES (?, ?, ?, ?)"};
  SqliteStatement value_{database_,
                         "INSERT INTO trial_values (trial_id, objective, value, value_type) "
                         "VALUES (?, ?, ?, ?)"};
  SqliteStatement report_{database_,
                          "INSERT INTO trial_intermediate_values (trial_id, step, "
                          "intermediate_value, intermediate_value_type) VALUES (?, ?, ?, ?)"};
  SqliteStatement attribute_{database_,
                             "INSERT INTO trial_user_attributes (trial_id, key, value_json) "
                             "VALUES (?, ?, ?)"};
  SqliteStatement constraint_{database_,
                              "INSERT INTO trial_system_attributes (trial_id, key, value_json) "
                              "VALUES (?, ?, ?)"};
};

void write_database(const Study& study, const fs::path& path) {
  SqliteDatabase database(path, /*create=*/true);
  SqliteTransaction transaction(database);
  database.execute(kTables);
  Writer writer(database, study);
  writer.write_study();
  for (const Trial& trial : study.trials()) writer.write(trial);
  transaction.commit();
}

}  // namespace

void export_to_optuna(const Study& study, const fs::path& path) {
  if (fs::exists(path)) {
    throw UsageError(fmt::format("{} already exists", printable(path.string())));
  }
  try {
    write_database(study, path);
  } catch (...) {
    // A partial file would block the next attempt.
    std::error_code error;
    fs::remove(path, error);
    fs::remove(path.string() + "-journal", error);
    throw;
  }
}

}  // namespace gallop::tune

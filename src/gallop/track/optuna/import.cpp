#include "gallop/track/optuna/import.h"

#include <cmath>
#include <ctime>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/foreign_run.h"

namespace gallop::track::optuna {

namespace {

using database::SqliteDatabase;
using database::SqliteStatement;
using Json = nlohmann::ordered_json;

constexpr int64_t kSchema = 12;

std::string name_of(std::string_view study, int64_t number) {
  std::string name;
  for (const char c : study) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    name += is_plain && !(name.empty() && c == '.') ? c : '-';
  }
  return fmt::format("{}-{:04}", name, number);
}

// "2026-03-01 12:00:00.123456", in UTC; 0 for nothing.
double seconds_of(std::string_view date) {
  std::tm time = {};
  const std::string text(date);
  const char* const rest = strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &time);
  if (rest == nullptr) return 0;
  return static_cast<double>(timegm(&time)) +
         parse_number<double>("0" + std::string(rest)).value_or(0);
}

double number_of(const SqliteStatement& row, int column) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string_view kind = row.text(column + 1);
  if (kind == "INF_POS") return kInfinity;
  return kind == "INF_NEG" ? -kInfinity : row.real(column);
}

// The value of a parameter, which the tables store as a number.
std::string word_of(double value, std::string_view distribution) {
  const Json json = Json::parse(distribution);
  const std::string kind = json.at("name");
  if (kind == "CategoricalDistribution") {
    const Json& choice = json.at("attributes").at("choices").at(static_cast<size_t>(value));
    return choice.is_string() ? choice.get<std::string>() : choice.dump();
  }
  if (kind.starts_with("Int")) return std::to_string(std::llround(value));
  return Json(value).dump();
}

// The names of a study's metrics.
std::vector<std::string> metrics_of(SqliteDatabase& database, int64_t study) {
  SqliteStatement named(database,
                        "SELECT value_json FROM study_system_attributes "
                        "WHERE study_id = ? AND key = 'study:metric_names'");
  if (named.bind(0, study).step()) return Json::parse(named.text(0));
  SqliteStatement counted(database, "SELECT count(*) FROM study_directions WHERE study_id = ?");
  counted.bind(0, study).step();
  const int64_t count = counted.integer(0);
  std::vector<std::string> metrics;
  for (int64_t i = 0; i < count; ++i) {
    metrics.push_back(count == 1 ? "value" : fmt::format("value_{}", i));
  }
  return metrics;
}

class Reader {
 public:
  Reader(SqliteDatabase& database, int64_t trial) : database_(database), trial_(trial) {}

  ForeignRun read() {
    SqliteStatement statement(database_,
                              "SELECT number, state, datetime_start, datetime_complete, "
                              "studies.study_id, study_name FROM trials JOIN studies "
                              "ON studies.study_id = trials.study_id WHERE trial_id = ?");
    if (!statement.bind(0, trial_).step()) throw DataError("a trial was deleted");
    const std::string state(statement.text(1));
    started_ = seconds_of(statement.text(2));
    ended_ = std::max(started_, seconds_of(statement.text(3)));
    run_.set_times(started_, ended_);
    metrics_ = metrics_of(database_, statement.integer(4));
    run_.set_tag("sweep", std::string(statement.text(5)));
    run_.set_tag("trial", std::to_string(statement.integer(0)));
    run_.set_tag("trial_state", state);
    if (state == "COMPLETE") run_.set_ending(ForeignRun::Ending::kFinished);
    if (state == "PRUNED") run_.set_ending(ForeignRun::Ending::kStopped);
    if (state == "FAIL") run_.set_ending(ForeignRun::Ending::kFailed);
    read_parameters();
    read_points();
    read_attributes();
    return std::move(run_);
  }

 private:
  SqliteStatement query(const char* sql) {
    SqliteStatement statement(database_, sql);
    statement.bind(0, trial_);
    return statement;
  }

  void read_parameters() {
    auto row = query(
        "SELECT param_name, param_value, distribution_json FROM trial_params WHERE trial_id = ?");
    while (row.step()) {
      run_.set_option(std::string(row.text(0)), word_of(row.real(1), row.text(2)));
    }
  }

  // Reports are of the first metric; the result is at the step of the last report.
  void read_points() {
    int64_t last_step = 0;
    std::optional<double> last_report;
    auto report = query(
        "SELECT step, intermediate_value, intermediate_value_type FROM trial_intermediate_values "
        "WHERE trial_id = ? ORDER BY step");
    while (report.step()) {
      last_step = report.integer(0);
      last_report = number_of(report, 1);
      run_.add(metrics_.at(0), last_step, started_, *last_report);
    }
    auto value = query(
        "SELECT objective, value, value_type FROM trial_values WHERE trial_id = ? "
        "ORDER BY objective");
    while (value.step()) {
      const auto objective = static_cast<size_t>(value.integer(0));
      const double result = number_of(value, 1);
      if (objective == 0 && last_report == result) continue;  // Already reported.
      run_.add(metrics_.at(objective), last_step, ended_, result);
    }
  }

  void read_attributes() {
    auto row = query("SELECT key, value_json FROM trial_user_attributes WHERE trial_id = ?");
    while (row.step()) {
      const Json value = Json::parse(row.text(1));
      run_.set_tag(std::string(row.text(0)),
                   value.is_string() ? value.get<std::string>() : value.dump());
    }
  }

  SqliteDatabase& database_;
  int64_t trial_;
  double started_ = 0, ended_ = 0;
  std::vector<std::string> metrics_;
  ForeignRun run_;
};

}  // namespace

Storage::Storage(const fs::path& file) : file_(file), database_(file, /*create=*/false) {
  const auto has = [&](const char* table) {
    SqliteStatement statement(database_, "SELECT 1 FROM sqlite_schema WHERE name = ?");
    return statement.bind(0, table).step();
  };
  if (!has("version_info") || !has("trials")) {
    throw DataError(fmt::format("{} is not an Optuna storage", printable(file.string())));
  }
  const int64_t schema = database_.number("SELECT schema_version FROM version_info");
  if (schema != kSchema) {
    throw DataError(
        fmt::format("{} has version {} of Optuna's schema; version {} is required; 'optuna storage "
                    "upgrade' upgrades it",
                    printable(file.string()), schema, kSchema));
  }
}

std::vector<StoredTrial> Storage::trials(const std::string& study) {
  SqliteStatement statement(database_,
                            "SELECT trial_id, study_name, number FROM trials JOIN studies "
                            "ON studies.study_id = trials.study_id WHERE state <> 'WAITING' "
                            "AND (?1 = '' OR study_name = ?1) ORDER BY trials.study_id, number");
  statement.bind(0, study);
  std::vector<StoredTrial> trials;
  std::vector<std::string> names;
  while (statement.step()) {
    trials.push_back({.id = statement.integer(0), .name = {}});
    names.push_back(name_of(statement.text(1), statement.integer(2)));
  }
  // Different study names may map to equal run names.
  names = run_names(names);
  for (size_t i = 0; i < trials.size(); ++i) trials[i].name = std::move(names[i]);
  if (!trials.empty()) return trials;
  names.clear();
  SqliteStatement studies(database_, "SELECT study_name FROM studies ORDER BY study_name");
  while (studies.step()) names.emplace_back(studies.text(0));
  throw UsageError(
      fmt::format("{} has no trials{}{}", printable(file_.string()),
                  study.empty() ? "" : fmt::format(" of a study '{}'", printable(study)),
                  names.empty() ? "" : "; its studies are " + printable(join_names(names, "and"))));
}

Imported Storage::import_trial(const StoredTrial& from, const fs::path& runs,
                               const std::string& name) {
  try {
    const ForeignRun run = Reader(database_, from.id).read();
    run.make(runs, name, "optuna");
    return run.summary();
  } catch (const std::exception& error) {
    // Invalid content, such as malformed JSON or an unknown choice.
    if (dynamic_cast<const Error*>(&error) != nullptr) throw;
    throw DataError(fmt::format("{}: trial {}: {}", printable(file_.string()), printable(from.name),
                                printable(error.what())));
  }
}

}  // namespace gallop::track::optuna

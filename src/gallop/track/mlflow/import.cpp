#include "gallop/track/mlflow/import.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/json_numbers.h"
#include "gallop/track/foreign_run.h"

namespace gallop::track::mlflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kRunsAtOnce = 1000;
constexpr int kPointsAtOnce = 20000;

[[noreturn]] void throw_no_answer(const Client& client) {
  throw UsageError(fmt::format("{} is not an MLflow server", printable(client.address())));
}

// 64-bit integers may be strings.
int64_t whole_of(const Json& json) {
  if (!json.is_string()) return json.get<int64_t>();
  const std::string& text = json.get_ref<const std::string&>();
  if (const auto number = parse_number<int64_t>(text)) return *number;
  throw DataError(fmt::format("not an integer: {}", printable(text)));
}

// Converts milliseconds; 0 if absent, such as the end of an unfinished run.
double seconds_of(const Json& info, const char* name) {
  return info.contains(name) && !info.at(name).is_null()
             ? 1e-3 * static_cast<double>(whole_of(info.at(name)))
             : 0;
}

Json get(Client& client, const std::string& what,
         const std::map<std::string, std::string>& parameters) {
  auto answer = client.get(what, parameters);
  if (!answer) throw_no_answer(client);
  return std::move(*answer);
}

// Reads the points of a metric; returns the number of invalid ones.
int64_t read_metric(Client& client, const std::string& id, const std::string& key,
                    ForeignRun& run) {
  int64_t unreadable = 0;
  std::string page;
  do {
    std::map<std::string, std::string> parameters = {
        {"run_id", id}, {"metric_key", key}, {"max_results", std::to_string(kPointsAtOnce)}};
    if (!page.empty()) parameters["page_token"] = page;
    const Json answer = get(client, "metrics/get-history", parameters);
    for (const Json& metric : answer.value("metrics", Json::array())) {
      try {
        run.add(key, metric.contains("step") ? whole_of(metric.at("step")) : 0,
                seconds_of(metric, "timestamp"), config::number_of(metric.at("value")));
      } catch (const Json::exception&) {
        ++unreadable;
      } catch (const DataError&) {
        ++unreadable;
      }
    }
    page = answer.value("next_page_token", "");
  } while (!page.empty());
  return unreadable;
}

ForeignRun::Ending ending_of(const std::string& status) {
  if (status == "FINISHED") return ForeignRun::Ending::kFinished;
  if (status == "FAILED") return ForeignRun::Ending::kFailed;
  return status == "KILLED" ? ForeignRun::Ending::kStopped : ForeignRun::Ending::kUnknown;
}

template <typename Function>
auto understand(const Client& client, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const Json::exception&) {
    throw_no_answer(client);
  }
}

}  // namespace

std::vector<ServerRun> find_runs(Client& client, const std::string& experiment) {
  return understand(client, [&] {
    const auto there = client.get("experiments/get-by-name", {{"experiment_name", experiment}});
    if (!there) {
      throw UsageError(fmt::format("MLflow at {} has no experiment '{}'",
                                   printable(client.address()), printable(experiment)));
    }
    Json search = {{"experiment_ids", {there->at("experiment").at("experiment_id")}},
                   {"max_results", kRunsAtOnce},
                   {"order_by", {"attributes.start_time ASC"}}};
    std::vector<ServerRun> runs;
    std::vector<std::string> names;
    for (;;) {
      const Json answer = client.post("runs/search", search);
      for (const Json& run : answer.value("runs", Json::array())) {
        const Json& info = run.at("info");
        runs.push_back({.id = info.at("run_id"), .name = {}});
        names.push_back(info.value("run_name", runs.back().id));
      }
      const std::string page = answer.value("next_page_token", "");
      if (page.empty()) break;
      search["page_token"] = page;
    }
    names = run_names(names);
    for (size_t i = 0; i < runs.size(); ++i) runs[i].name = std::move(names[i]);
    return runs;
  });
}

Imported import_run(Client& client, const ServerRun& from, const fs::path& runs,
                    const std::string& name) {
  return understand(client, [&] {
    const Json answer = get(client, "runs/get", {{"run_id", from.id}});
    const Json& data = answer.at("run").at("data");
    ForeignRun run;
    const Json& info = answer.at("run").at("info");
    run.set_ending(ending_of(info.value("status", "")));
    run.set_times(seconds_of(info, "start_time"), seconds_of(info, "end_time"));
    for (const Json& param : data.value("params", Json::array())) {
      run.set_option(param.at("key"), param.at("value"));
    }
    for (const Json& tag : data.value("tags", Json::array())) {
      const std::string key = tag.at("key");
      if (!key.starts_with("mlflow.")) run.set_tag(key, tag.at("value"));
    }
    int64_t unreadable = 0;
    for (const Json& metric : data.value("metrics", Json::array())) {
      unreadable += read_metric(client, from.id, metric.at("key"), run);
    }
    run.number_points_without_step();
    run.make(runs, name, "mlflow");
    Imported imported = run.summary();
    if (unreadable > 0) {
      imported.notes.push_back(
          fmt::format("{} points with an invalid value, step or time were "
                      "skipped",
                      format_count(unreadable)));
    }
    return imported;
  });
}

}  // namespace gallop::track::mlflow

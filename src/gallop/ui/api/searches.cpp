#include <chrono>
#include <sstream>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/query.h"

namespace gallop::ui::api {

namespace {

// Size of a report or journal; a search of a day writes less than a megabyte.
constexpr int64_t kMostBytes = int64_t{1} << 26;

fs::path find_search(const Context& context, const Query& query) {
  try {
    return context.searches.find(query.needed("name"));
  } catch (const UsageError& error) {
    throw Refusal(404, error.what());
  }
}

[[noreturn]] void damaged(const fs::path& file, const Json::exception& error) {
  throw DataError(
      fmt::format("{} is damaged: {}", printable(file.string()), printable(error.what())));
}

// Null before the first change was tried.
Json report_json(const fs::path& search) {
  const fs::path file = Searches::report_of(search);
  if (!fs::exists(file)) return {};
  try {
    return Json::parse(read_file(file, kMostBytes));
  } catch (const Json::exception& error) {
    damaged(file, error);
  }
}

double seconds_of_last_change(const fs::path& search) {
  std::error_code error;
  const auto time = fs::last_write_time(search / "journal.jsonl", error);
  if (error) return 0;
  const auto since_1970 = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration<double>(since_1970).count();
}

// "1.18x", "0.8792" or "0.003"; empty if there is no number that says it all.
std::string outcome_of(const Json& result) {
  if (result.is_number()) return fmt::format("{:.3g}", result.get<double>());
  if (!result.is_object()) return {};
  if (const auto failure = result.find("failure"); failure != result.end()) {
    return "failed: " + failure->get<std::string>();
  }
  if (const auto speedup = result.find("speedup"); speedup != result.end()) {
    const Json& value = speedup->at("value");
    return value.is_number() ? fmt::format("{:.2f}x", value.get<double>()) : "";
  }
  const auto evaluations = result.find("evaluations");
  if (evaluations == result.end() || evaluations->empty()) return {};
  const Json& metric = evaluations->back().at("metric");
  return metric.is_number() ? fmt::format("{:.4g}", metric.get<double>()) : "NaN";
}

// The experiments of a journal (optimize/journal.h). Its last line may be incomplete.
Json experiments_of(const fs::path& search) {
  const fs::path file = search / "journal.jsonl";
  const std::string text = read_file(file, kMostBytes);
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
  Json list = Json::array();
  try {
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line);
      if (!json.contains("experiment")) continue;
      list.push_back({{"experiment", json.at("experiment")},
                      {"seconds", json.at("seconds")},
                      {"outcome", outcome_of(json.at("result"))}});
    }
  } catch (const Json::exception& error) {
    damaged(file, error);
  }
  return list;
}

Json summary_of(const std::string& name, const fs::path& search, const Json& report) {
  Json json = {{"name", name},
               {"state", name_of(Searches::state_of(search))},
               {"changed", seconds_of_last_change(search)}};
  if (report.is_null()) return json;
  size_t kept = 0;
  try {
    for (const Json& trial : report.at("trials")) {
      if (trial.at("verdict") == "kept") ++kept;
    }
    json["trials"] = report.at("trials").size();
    json["kept"] = kept;
    for (const char* key : {"goal", "recipe", "gain", "seconds", "budget_seconds"}) {
      json[key] = report.at(key);
    }
  } catch (const Json::exception& error) {
    damaged(Searches::report_of(search), error);
  }
  return json;
}

}  // namespace

http::Response searches(Context& context, const http::Request& /*request*/) {
  Json list = Json::array();
  for (const std::string& name : context.searches.names()) {
    try {
      const fs::path search = context.searches.find(name);
      list.push_back(summary_of(name, search, report_json(search)));
      list.back()["trouble"] = "";
    } catch (const Error& error) {
      list.push_back({{"name", name}, {"state", "unreadable"}, {"trouble", error.what()}});
    }
  }
  return json_response({{"searches", std::move(list)}});
}

http::Response search(Context& context, const http::Request& request) {
  const Query query(request);
  const fs::path folder = find_search(context, query);
  const Json report = report_json(folder);
  Json json = summary_of(query.needed("name"), folder, report);
  json["report"] = report;
  json["experiments"] = experiments_of(folder);
  json["has_plot"] = json["state"] == "finished" && fs::exists(folder / "report.svg");
  return json_response(json);
}

http::Response search_plot(Context& context, const http::Request& request) {
  const fs::path file = find_search(context, Query(request)) / "report.svg";
  if (!fs::exists(file)) throw Refusal(404, "the search has not ended; there is no plot yet");
  return {.type = "image/svg+xml", .body = read_file(file, kMostBytes)};
}

}  // namespace gallop::ui::api

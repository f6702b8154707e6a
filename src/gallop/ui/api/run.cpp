#include <map>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/track/identity.h"
#include "gallop/track/labels.h"
#include "gallop/track/run_folder.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/checkpoints.h"
#include "gallop/ui/api/origins.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

namespace {

using track::RunRow;

constexpr int64_t kMostRecords = 1000;

// Reads the parts of a run independently, so that a damaged part does not hide the others.
class RunReader {
 public:
  explicit RunReader(std::string trouble) : trouble_(std::move(trouble)) {}

  template <typename Read>
  void read(const Read& piece) {
    try {
      piece();
    } catch (const Error& error) {
      if (trouble_.find(error.what()) != std::string::npos) return;
      trouble_ += (trouble_.empty() ? "" : "; ") + std::string(error.what());
    }
  }

  const std::string& trouble() const { return trouble_; }

 private:
  std::string trouble_;
};

std::vector<std::pair<std::string, Json>> info_of(const fs::path& folder) {
  const track::RunInfo info = track::RunFolder::read_info(folder);
  return {{"version", info.version},
          {"commit", info.commit},
          {"command", shell_line(info.command_line)},
          {"started", info.started},
          {"processes", info.processes},
          {"host", info.hardware.host},
          {"cpu", info.hardware.cpu_model},
          {"cores", info.hardware.cores},
          {"memory_bytes", info.hardware.memory_bytes},
          {"instruction_sets", info.hardware.instruction_sets}};
}

Json metrics_json(const RunHistory& history) {
  Json list = Json::array();
  for (const auto& [name, points] : history.metrics()) {
    const track::MetricSummary metric = summary_of(points);
    list.push_back({{"name", name},
                    {"last", number_json(metric.last)},
                    {"last_step", metric.last_step},
                    {"least", number_json(metric.least)},
                    {"least_step", metric.least_step},
                    {"most", number_json(metric.most)},
                    {"most_step", metric.most_step},
                    {"count", metric.count}});
  }
  return list;
}

Json ends_json(const RunHistory& history) {
  Json list = Json::array();
  for (const track::Record& end : history.ends()) {
    list.push_back({{"time", end.time}, {"step", end.step}, {"reason", track::end_text(end)}});
  }
  return list;
}

Json energy_json(const track::Energy& energy, const track::Surroundings& surroundings) {
  const track::Footprint cost = track::footprint_of(energy, surroundings);
  Json json{{"joules", number_json(energy.joules)},
            {"method", energy.method},
            {"seconds", number_json(energy.seconds)},
            {"kwh", number_json(cost.kwh)},
            {"pue", surroundings.pue}};
  if (surroundings.grams_per_kwh) json["co2_grams"] = number_json(cost.grams);
  if (surroundings.price_per_hour > 0) json["price"] = number_json(cost.price);
  return json;
}

Json params_json(const fs::path& folder) {
  const auto origins = read_origins(folder);
  Json list = Json::array();
  for (const auto& [name, value] : track::recipe_options(folder)) {
    const auto origin = origins.find(name);
    list.push_back({{"name", name},
                    {"value", value},
                    {"origin", origin != origins.end() ? origin->second : ""}});
  }
  return list;
}

Json files_json(const std::vector<track::DataIdentity>& all) {
  Json list = Json::array();
  for (const track::DataIdentity& one : all) {
    list.push_back({{"path", one.path},
                    {"files", one.files},
                    {"bytes", one.bytes},
                    {"checksum", one.checksum}});
  }
  return list;
}

Json identity_json(const fs::path& folder) {
  Json list = Json::array();
  for (const track::Identity& identity : track::read_identities(folder)) {
    Json entry{{"step", identity.step},
               {"version", identity.version},
               {"program", identity.program},
               {"plugins", files_json(identity.plugins)},
               {"models", files_json(identity.models)},
               {"data", files_json(identity.data)}};
    if (const auto& code = identity.code) {
      entry["code"] = {{"folder", code->folder},    {"commit", code->commit},
                       {"branch", code->branch},    {"remote", code->remote},
                       {"patch", code->patch},      {"patch_bytes", code->patch_bytes},
                       {"left_out", code->left_out}};
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json checkpoints_json(const fs::path& folder) {
  Json list = Json::array();
  for (const CheckpointRow& row : read_checkpoints(folder)) {
    list.push_back({{"name", row.name},
                    {"step", row.step},
                    {"bytes", row.bytes},
                    {"time", row.time},
                    {"marks", row.marks}});
  }
  return list;
}

Json record_json(const track::Record& record) {
  Json json{{"session", record.session}, {"step", record.step},      {"time", record.time},
            {"kind", record.kind},       {"values", Json::object()}, {"texts", record.texts}};
  for (const auto& [name, value] : record.values) json["values"][name] = number_json(value);
  if (record.superseded) json["superseded"] = true;
  return json;
}

// A row of the comparison table; null where a run has no value.
Json compared(const std::string& name, const Json& values) {
  bool differs = false;
  for (const Json& value : values) differs = differs || value != values.front();
  return {{"name", name}, {"values", values}, {"differs", differs}};
}

Json side_by_side(const std::vector<std::string>& names,
                  const std::vector<std::map<std::string, Json>>& runs) {
  Json list = Json::array();
  for (const std::string& name : names) {
    Json values = Json::array();
    for (const auto& run : runs) {
      const auto found = run.find(name);
      values.push_back(found != run.end() ? found->second : Json());
    }
    list.push_back(compared(name, values));
  }
  return list;
}

}  // namespace

http::Response run(Context& context, const http::Request& request) {
  const RunRow row = row_of(context.runs, Query(request).needed("name"));
  const fs::path folder = context.runs.path_of(row.name);
  RunReader reader(row.trouble);
  Json json{{"name", row.name},
            {"state", track::state_name(row.state)},
            {"created", row.created},
            {"seconds", row.seconds},
            {"steps", row.steps},
            {"note", row.note},
            {"tags", Json::object()},
            {"trouble", ""},
            {"metrics", Json::array()},
            {"params", Json::array()},
            {"info", Json::object()},
            {"identity", Json::array()},
            {"checkpoints", Json::array()},
            {"ends", Json::array()},
            {"energy", nullptr},
            {"kinds", Json::array()}};
  reader.read([&] {
    const track::Labels labels = track::read_labels(folder);
    json["tags"] = labels.tags;
    json["note"] = labels.note;
  });
  reader.read([&] {
    context.runs.with_history(row.name, [&](const RunHistory& history) {
      json["metrics"] = metrics_json(history);
      json["ends"] = ends_json(history);
      json["energy"] = energy_json(history.energy(), context.surroundings);
      json["kinds"] = history.kinds();
    });
  });
  reader.read([&] { json["params"] = params_json(folder); });
  reader.read([&] {
    for (auto& [name, value] : info_of(folder)) json["info"][name] = std::move(value);
  });
  reader.read([&] { json["identity"] = identity_json(folder); });
  reader.read([&] { json["checkpoints"] = checkpoints_json(folder); });
  json["trouble"] = reader.trouble();
  return json_response(json);
}

http::Response run_recipe(Context& context, const http::Request& request) {
  const RunRow row = row_of(context.runs, Query(request).needed("name"));
  return json_response({{"recipe", track::RunFolder::read_recipe(context.runs.path_of(row.name))}});
}

http::Response run_log(Context& context, const http::Request& request) {
  const Query query(request);
  const RunRow row = row_of(context.runs, query.needed("name"));
  const std::string kind = query.text("kind");
  const auto offset = static_cast<size_t>(query.count("offset", 0, int64_t{1} << 40, 0));
  const auto limit = static_cast<size_t>(query.count("limit", 1, kMostRecords, 200));
  return json_response(context.runs.with_history(row.name, [&](const RunHistory& history) {
    Json records = Json::array();
    for (const track::Record& record : history.records(kind, offset, limit)) {
      records.push_back(record_json(record));
    }
    return Json{{"total", history.count(kind)}, {"records", std::move(records)}};
  }));
}

http::Response compare(Context& context, const http::Request& request) {
  const auto names = named_runs(context.runs, Query(request));
  std::vector<std::map<std::string, Json>> options, infos;
  std::set<std::string> params;
  std::vector<std::string> info_names;
  for (const std::string& name : names) {
    const fs::path folder = context.runs.path_of(name);
    RunReader reader("");
    auto& of_run = options.emplace_back();
    reader.read([&] {
      for (const auto& [option, value] : track::recipe_options(folder)) {
        of_run[option] = value;
        params.insert(option);
      }
    });
    auto& info_of_run = infos.emplace_back();
    reader.read([&] {
      const auto info = info_of(folder);
      info_names.clear();
      for (const auto& [key, value] : info) {
        info_names.push_back(key);
        info_of_run[key] = value;
      }
    });
  }
  return json_response({{"runs", names},
                        {"params", side_by_side({params.begin(), params.end()}, options)},
                        {"info", side_by_side(info_names, infos)}});
}

}  // namespace gallop::ui::api

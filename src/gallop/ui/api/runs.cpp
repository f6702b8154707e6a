#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

namespace {

using track::RunIndex;
using track::RunRow;

constexpr int64_t kMostRows = 1000;
constexpr double kExact = 0x1p53;  // Integers from here on lose digits as numbers.

// The values of runs in one column of the table; null for a run without a value.
class Cells {
 public:
  Cells(const std::string& column, const RunIndex& index, const std::vector<std::string>& runs) {
    const size_t dot = column.find('.');
    const std::string kind = column.substr(0, dot);
    const std::string name = dot != std::string::npos ? column.substr(dot + 1) : "";
    if (name.empty() || (kind != "metrics" && kind != "params" && kind != "tags")) {
      throw UsageError(
          fmt::format("'{}' is not a column; valid are metrics.NAME, params.NAME and tags.NAME",
                      printable(column)));
    }
    if (runs.empty()) return;
    if (kind == "metrics") numbers_ = index.metric(name, runs);
    if (kind == "params") texts_ = index.param(name, runs);
    if (kind == "tags") texts_ = index.tag(name, runs);
    has_numbers_ = kind == "params";
  }

  Json of(const std::string& run) const {
    if (const auto found = numbers_.find(run); found != numbers_.end()) {
      return number_json(found->second);
    }
    const auto found = texts_.find(run);
    if (found == texts_.end()) return nullptr;
    const auto number = has_numbers_ ? parse_number<double>(found->second) : std::nullopt;
    return number && std::abs(*number) < kExact ? Json(*number) : Json(found->second);
  }

 private:
  std::map<std::string, double> numbers_;
  track::Column texts_;
  bool has_numbers_ = false;  ///< Among the texts; a tag such as "1.10" is none.
};

Json json_of(const RunRow& row, const std::vector<Cells>& columns) {
  Json values = Json::array();
  for (const Cells& column : columns) values.push_back(column.of(row.name));
  return {{"name", row.name},       {"state", track::state_name(row.state)},
          {"created", row.created}, {"seconds", row.seconds},
          {"steps", row.steps},     {"note", row.note},
          {"trouble", row.trouble}, {"values", std::move(values)}};
}

// Names may contain commas: only those before a column prefix separate names.
std::vector<std::string> column_names(const Query& query) {
  return query.names("columns", [](const std::string& name) {
    const auto separates = [&](const char* kind) { return name.find(kind) != std::string::npos; };
    return !separates(",metrics.") && !separates(",params.") && !separates(",tags.");
  });
}

Json table_of(const RunIndex& index, const Query& query) {
  RunOrder order;
  order.filter = query.text("filter");
  order.sort = query.text("sort");
  order.descending = query.flag("descending");
  const auto chosen = chosen_runs(index, order);
  const auto total = static_cast<int64_t>(chosen.size());
  const int64_t offset = std::min(query.count("offset", 0, int64_t{1} << 40, 0), total);
  const int64_t end = std::min(total, offset + query.count("limit", 1, kMostRows, 200));
  const std::vector<const RunRow*> shown(chosen.begin() + offset, chosen.begin() + end);
  std::vector<std::string> names;
  for (const RunRow* row : shown) names.push_back(row->name);
  std::vector<Cells> columns;
  for (const std::string& column : column_names(query)) {
    columns.emplace_back(column, index, names);
  }
  Json rows = Json::array();
  for (const RunRow* row : shown) rows.push_back(json_of(*row, columns));
  return {{"total", index.rows().size()}, {"matching", total}, {"runs", std::move(rows)}};
}

}  // namespace

http::Response columns(Context& context, const http::Request& /*request*/) {
  return json_response(context.runs.with_index([](const RunIndex& index) {
    return Json{{"metrics", index.metric_names()},
                {"params", index.param_names()},
                {"tags", index.tag_names()}};
  }));
}

http::Response runs(Context& context, const http::Request& request) {
  const Query query(request);
  return json_response(
      context.runs.with_index([&](const RunIndex& index) { return table_of(index, query); }));
}

http::Response groups(Context& context, const http::Request& request) {
  const Query query(request);
  const auto groups = context.runs.with_index([&](const RunIndex& index) {
    return groups_of(index, query.needed("by"), query.text("filter"));
  });
  Json list = Json::array();
  for (const RunGroup& group : groups) {
    list.push_back({{"value", group.value}, {"count", group.runs.size()}, {"runs", group.runs}});
  }
  return json_response({{"groups", std::move(list)}});
}

}  // namespace gallop::ui::api

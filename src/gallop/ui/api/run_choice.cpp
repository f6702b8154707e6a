#include "gallop/ui/api/run_choice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/run_column.h"
#include "gallop/track/run_filter.h"
#include "gallop/ui/api/answer.h"

namespace gallop::ui::api {

namespace {

using track::RunColumn;
using track::RunIndex;
using track::RunRow;
using Value = config::Expression::Value;

struct Keyed {
  const RunRow* row;
  Value key;

  bool is_missing() const {
    const auto* number = std::get_if<double>(&key);
    return number != nullptr && std::isnan(*number);
  }
};

struct NumbersFirst {
  static std::optional<double> number_of(const std::string& text) {
    const auto number = parse_number<double>(text);
    return number && std::isfinite(*number) ? number : std::nullopt;
  }

  bool operator()(const std::string& a, const std::string& b) const {
    const auto x = number_of(a), y = number_of(b);
    if (x && y && *x != *y) return *x < *y;
    if (x.has_value() != y.has_value()) return x.has_value();
    return a < b;
  }
};

[[noreturn]] void refuse_run(const RunIndex& index, const std::string& name) {
  std::vector<std::string> names;
  for (const RunRow& row : index.rows()) names.push_back(row.name);
  const std::string nearest = nearest_name(name, names);
  throw Refusal(
      404,
      fmt::format("there is no run '{}'{}", printable(name),
                  nearest.empty() ? "" : fmt::format("; did you mean '{}'?", printable(nearest))));
}

// Binary search by name.
const RunRow* find_row(const RunIndex& index, const std::string& name) {
  const auto& rows = index.rows();
  const auto found = std::lower_bound(
      rows.begin(), rows.end(), name,
      [](const RunRow& row, const std::string& wanted) { return row.name < wanted; });
  return found != rows.end() && found->name == name ? &*found : nullptr;
}

}  // namespace

std::vector<const RunRow*> chosen_runs(const RunIndex& index, const RunOrder& order) {
  const track::RunFilter filter(order.filter, index);
  const bool is_default = order.sort.empty();
  const RunColumn column(is_default ? "created" : order.sort, index);
  const bool descending = order.descending || is_default;
  std::vector<Keyed> rows;
  for (const RunRow& row : index.rows()) {
    if (filter.chooses(row)) rows.push_back({&row, column.value(row)});
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const Keyed& a, const Keyed& b) {
    if (a.is_missing() || b.is_missing()) return !a.is_missing() && b.is_missing();
    return descending ? b.key < a.key : a.key < b.key;
  });
  std::vector<const RunRow*> chosen;
  for (const Keyed& one : rows) chosen.push_back(one.row);
  return chosen;
}

std::vector<std::string> named_runs(Runs& runs, const Query& query) {
  return runs.with_index([&](const RunIndex& index) {
    const auto given = query.names(
        "runs", [&](const std::string& name) { return find_row(index, name) != nullptr; });
    if (given.empty()) throw UsageError("'runs' is required: comma-separated names");
    std::vector<std::string> names;
    std::set<std::string> known;
    for (const std::string& name : given) {
      if (find_row(index, name) == nullptr) refuse_run(index, name);
      if (known.insert(name).second) names.push_back(name);
    }
    return names;
  });
}

RunRow row_of(Runs& runs, const std::string& name) {
  return runs.with_index([&](const RunIndex& index) {
    const RunRow* const row = find_row(index, name);
    if (row == nullptr) refuse_run(index, name);
    return *row;
  });
}

std::vector<RunGroup> groups_of(const RunIndex& index, const std::string& column,
                                const std::string& filter) {
  const track::RunFilter chosen(filter, index);
  std::optional<RunColumn> values;
  if (!column.empty()) values.emplace(column, index);
  std::map<std::string, std::vector<std::string>, NumbersFirst> groups;
  for (const RunRow& row : index.rows()) {
    if (chosen.chooses(row)) groups[values ? values->text(row) : ""].push_back(row.name);
  }
  std::vector<RunGroup> result;
  for (auto& [value, names] : groups) result.push_back({value, std::move(names)});
  return result;
}

}  // namespace gallop::ui::api

#include "gallop/app/runs/run_table.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/csv.h"
#include "gallop/base/defined_text.h"
#include "gallop/base/text.h"
#include "gallop/plot/labels.h"
#include "gallop/track/run_filter.h"

namespace gallop::app {

namespace {

using track::RunColumn;
using track::RunIndex;
using track::RunRow;
using Json = nlohmann::ordered_json;

const std::vector<std::string> kUsual = {"name", "created", "state", "seconds", "steps"};

// Empty or NaN, which is not sorted.
bool is_missing(const std::string& key) {
  const auto number = parse_number<double>(key);
  return key.empty() || (number && std::isnan(*number));
}

// Numbers before texts. Neither is missing.
bool is_before(const std::string& a, const std::string& b) {
  const auto x = parse_number<double>(a), y = parse_number<double>(b);
  if (x && y) return *x < *y;
  if (x || y) return x.has_value();
  return a < b;
}

std::string shown(const std::string& column, const std::string& cell) {
  const auto number = parse_number<double>(cell);
  if (!number) return printable(cell);
  if (column == "created") return local_time(*number);
  if (column == "seconds") return format_duration(*number);
  if (column == "steps") return format_count(parse_number<int64_t>(cell).value());
  return column.starts_with("metrics.") ? defined_text(*number, "{:.5g}") : cell;
}

std::string header_of(const std::string& column) {
  if (column == "seconds") return "time";
  for (const char* prefix : {"metrics.", "params.", "tags."}) {
    if (column.starts_with(prefix)) return column.substr(std::string_view(prefix).size());
  }
  return column;
}

// The number of columns that fit into a line, with the first one narrowed if necessary.
size_t fit(std::vector<size_t>& widths, size_t letters) {
  constexpr size_t kLeastName = 24;
  size_t sum = 2 * (widths.size() - 1);
  for (const size_t width : widths) sum += width;
  if (sum > letters) {
    const size_t others = sum - widths.front();
    const size_t room = letters > others ? letters - others : 0;
    widths.front() = std::min(widths.front(), std::max(room, kLeastName));
  }
  size_t used = widths.front(), count = 1;
  while (count < widths.size() && used + 2 + widths[count] <= letters) used += 2 + widths[count++];
  return count;
}

Json json_of(const std::string& cell) {
  if (const auto whole = parse_number<int64_t>(cell)) return *whole;
  const auto number = parse_number<double>(cell);
  return number && std::isfinite(*number) ? Json(*number) : Json(cell);
}

}  // namespace

std::vector<std::string> usual_columns(const RunIndex& index) {
  std::vector<std::string> columns;
  const auto names = index.metric_names();
  for (const char* name : {"accuracy", "loss"}) {
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      columns.push_back(std::string("metrics.") + name);
    }
  }
  return columns;
}

RunTable make_table(const RunIndex& index, const TableConfig& config) {
  RunTable table;
  table.columns = kUsual;
  table.columns.insert(table.columns.end(), config.columns.begin(), config.columns.end());
  std::vector<RunColumn> columns;
  for (const std::string& name : table.columns) columns.emplace_back(name, index);
  const RunColumn key(config.sort.empty() ? "created" : config.sort, index);
  const track::RunFilter filter(config.filter, index);

  struct Keyed {
    const RunRow* row;
    std::string key;
  };
  std::vector<Keyed> rows;
  for (const RunRow& row : index.rows()) {
    if (filter.chooses(row)) rows.push_back({&row, key.text(row)});
  }
  const auto missing = std::stable_partition(rows.begin(), rows.end(),
                                             [](const Keyed& row) { return !is_missing(row.key); });
  std::stable_sort(rows.begin(), missing, [&](const Keyed& a, const Keyed& b) {
    return config.descending ? is_before(b.key, a.key) : is_before(a.key, b.key);
  });
  table.chosen = static_cast<int64_t>(rows.size());
  table.all = static_cast<int64_t>(index.rows().size());
  const int64_t shown = config.most > 0 ? std::min(config.most, table.chosen) : table.chosen;
  // The last ones; runs without a value are omitted first.
  const auto first = missing - std::min<int64_t>(shown, missing - rows.begin());
  for (auto row = first; row != first + shown; ++row) {
    auto& cells = table.cells.emplace_back();
    for (const RunColumn& column : columns) cells.push_back(column.text(*row->row));
  }
  return table;
}

std::string to_text(const RunTable& table, size_t letters) {
  std::vector<std::vector<std::string>> lines(table.cells.size() + 1);
  std::vector<size_t> widths(table.columns.size());
  for (size_t line = 0; line < lines.size(); ++line) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      lines[line].push_back(line == 0 ? printable(header_of(table.columns[i]))
                                      : shown(table.columns[i], table.cells[line - 1][i]));
      widths[i] = std::max(widths[i], plot::width_of(lines[line].back()));
    }
  }
  const size_t count = letters > 0 ? fit(widths, letters) : widths.size();
  std::string text;
  for (const auto& cells : lines) {
    std::string line;
    for (size_t i = 0; i < count; ++i) {
      const std::string cell = plot::shortened(cells[i], widths[i], "...");
      const std::string gap(widths[i] - plot::width_of(cell), ' ');
      const bool is_text = i == 0 || table.columns[i] == "created" || table.columns[i] == "state" ||
                           table.columns[i].starts_with("tags.");
      line += (i > 0 ? "  " : "") + (is_text ? cell + gap : gap + cell);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  std::string left_out;
  for (size_t i = count; i < widths.size(); ++i) left_out += (i > count ? ", " : "") + lines[0][i];
  return left_out.empty() ? text : text + "omitted columns: " + left_out + "\n";
}

std::string to_csv(const RunTable& table) {
  std::string text = csv_line(table.columns);
  for (const auto& cells : table.cells) text += csv_line(cells);
  return text;
}

std::string to_json(const RunTable& table) {
  Json all = Json::array();
  for (const auto& cells : table.cells) {
    Json& run = all.emplace_back(Json::object());
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].empty()) continue;
      run[table.columns[i]] = i > 0 ? json_of(cells[i]) : Json(cells[i]);
    }
  }
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string local_time(double seconds) {
  if (seconds == 0) return {};
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  localtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

}  // namespace gallop::app

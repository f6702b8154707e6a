#include "gallop/track/run_column.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

using Value = config::Expression::Value;

const std::vector<std::string> kOfRow = {"name", "state", "created", "seconds", "steps"};

[[noreturn]] void refuse(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  throw UsageError(fmt::format(
      "no run has '{}'{}", printable(name),
      nearest.empty()
          ? "; names are metrics.NAME, params.NAME, tags.NAME, " + join_names(kOfRow, "and")
          : "; did you mean '" + nearest + "'?"));
}

std::vector<std::string> with_prefix(const std::string& prefix, std::vector<std::string> names) {
  for (std::string& name : names) name.insert(0, prefix);
  return names;
}

Value value_of_row(const RunRow& row, const std::string& name) {
  if (name == "name") return row.name;
  if (name == "state") return std::string(state_name(row.state));
  if (name == "created") return row.created;
  if (name == "seconds") return row.seconds;
  return static_cast<double>(row.steps);
}

bool is_of_row(const std::string& name) {
  return std::find(kOfRow.begin(), kOfRow.end(), name) != kOfRow.end();
}

}  // namespace

RunColumn::RunColumn(std::string name, const RunIndex& index) : name_(std::move(name)) {
  if (is_of_row(name_)) return;
  const std::string kind = name_.substr(0, name_.find('.') + 1);
  const std::string rest = name_.substr(kind.size());
  if (kind == "metrics.") {
    numbers_ = index.metric(rest);
    if (numbers_.empty()) refuse(name_, with_prefix(kind, index.metric_names()));
  } else if (kind == "params.") {
    texts_ = index.param(rest);
    if (texts_.empty()) refuse(name_, with_prefix(kind, index.param_names()));
  } else if (kind == "tags.") {
    texts_ = index.tag(rest);
    if (texts_.empty()) refuse(name_, with_prefix(kind, index.tag_names()));
  } else {
    refuse(name_, kOfRow);
  }
}

std::string RunColumn::text(const RunRow& row) const {
  if (const auto found = texts_.find(row.name); found != texts_.end()) return found->second;
  if (const auto found = numbers_.find(row.name); found != numbers_.end()) {
    return fmt::format("{}", found->second);
  }
  if (!is_of_row(name_)) return {};
  if (name_ == "steps") return std::to_string(row.steps);  // A double has 53 bits.
  const Value value = value_of_row(row, name_);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return fmt::format("{}", std::get<double>(value));
}

Value RunColumn::value(const RunRow& row) const {
  if (is_of_row(name_)) return value_of_row(row, name_);
  if (const auto found = texts_.find(row.name); found != texts_.end()) {
    const auto number = parse_number<double>(found->second);
    return number && std::isfinite(*number) ? Value(*number) : Value(found->second);
  }
  const auto found = numbers_.find(row.name);
  return found != numbers_.end() ? found->second : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace gallop::track

#include "gallop/track/run_filter.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

using Value = config::Expression::Value;

const std::vector<std::string> kOfRow = {"name", "state", "created", "seconds", "steps"};

Value value_of_text(const std::string& text) {
  if (const auto number = parse_number<double>(text)) return *number;
  return text;
}

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

}  // namespace

RunFilter::RunFilter(const std::string& text, const RunIndex& index) {
  if (text.empty()) return;
  formula_.emplace(text);
  for (const std::string& name : formula_->names()) {
    Name& one = names_.emplace_back();
    one.text = name;
    one.is_of_row = std::find(kOfRow.begin(), kOfRow.end(), name) != kOfRow.end();
    if (one.is_of_row) continue;
    const std::string kind = name.substr(0, name.find('.') + 1);
    const std::string rest = name.substr(kind.size());
    if (kind == "metrics.") {
      for (const auto& [run, value] : index.metric(rest)) one.values[run] = value;
      if (one.values.empty()) refuse(name, with_prefix(kind, index.metric_names()));
    } else if (kind == "params.") {
      for (const auto& [run, value] : index.param(rest)) one.values[run] = value_of_text(value);
      if (one.values.empty()) refuse(name, with_prefix(kind, index.param_names()));
    } else if (kind == "tags.") {
      for (const auto& [run, value] : index.tag(rest)) one.values[run] = value_of_text(value);
      if (one.values.empty()) refuse(name, with_prefix(kind, index.tag_names()));
    } else {
      refuse(name, kOfRow);
    }
  }
}

Value RunFilter::value_of(const Name& name, const RunRow& row) const {
  if (!name.is_of_row) {
    const auto found = name.values.find(row.name);
    return found != name.values.end() ? found->second
                                      : Value(std::numeric_limits<double>::quiet_NaN());
  }
  if (name.text == "name") return row.name;
  if (name.text == "state") return std::string(state_name(row.state));
  if (name.text == "created") return row.created;
  if (name.text == "seconds") return row.seconds;
  return static_cast<double>(row.steps);
}

bool RunFilter::chooses(const RunRow& row) const {
  if (!formula_) return true;
  std::vector<Value> values;
  for (const Name& name : names_) values.push_back(value_of(name, row));
  return formula_->holds(values);
}

}  // namespace gallop::track

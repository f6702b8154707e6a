#include "gallop/track/run_filter.h"

#include <cmath>
#include <variant>

namespace gallop::track {

RunFilter::RunFilter(const std::string& text, const RunIndex& index) {
  if (text.empty()) return;
  formula_.emplace(text);
  for (const std::string& name : formula_->names()) columns_.emplace_back(name, index);
}

bool RunFilter::chooses(const RunRow& row) const {
  if (!formula_) return true;
  std::vector<config::Expression::Value> values;
  for (const RunColumn& column : columns_) values.push_back(column.value(row));
  const auto result = formula_->evaluate(values);
  const auto* const number = std::get_if<double>(&result);
  return (number == nullptr || !std::isnan(*number)) && formula_->holds(values);
}

}  // namespace gallop::track

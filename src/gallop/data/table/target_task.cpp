#include "gallop/data/table/target_task.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace gallop::data {

namespace {

// Whether the values are whole numbers that count from 0 or 1.
bool count_classes(const std::vector<std::string>& distinct) {
  std::set<double> values;
  for (const std::string& text : distinct) {
    const auto value = parse_value(text, NumberFormat::kPoint);
    if (!value || *value != std::floor(*value)) return false;
    values.insert(*value);
  }
  if (values.size() < 2 || *values.begin() < 0 || *values.begin() > 1) return false;
  return *values.rbegin() - *values.begin() == static_cast<double>(values.size() - 1);
}

bool is_binary(const ColumnScan& scan) {
  if (scan.type.kind == ColumnKind::kBoolean) return true;
  return !scan.distinct.empty() &&
         std::all_of(scan.distinct.begin(), scan.distinct.end(), [](const std::string& text) {
           const auto value = parse_value(text, NumberFormat::kPoint);
           return value && (*value == 0 || *value == 1);
         });
}

}  // namespace

std::string natural_task(const std::vector<const ColumnScan*>& targets, bool numbers_only) {
  const ColumnScan& first = *targets.front();
  if (targets.size() > 1) {
    const bool has_labels = std::all_of(targets.begin(), targets.end(),
                                        [](const ColumnScan* scan) { return is_binary(*scan); });
    return has_labels ? "multi-label" : "regression";
  }
  bool is_class = first.type.kind != ColumnKind::kNumber &&
                  (first.mistake.empty() || first.likely.kind != ColumnKind::kNumber);
  if (numbers_only) is_class = first.numbers != first.values;
  if (!numbers_only && first.type.kind == ColumnKind::kNumber) {
    is_class = count_classes(first.distinct);
  }
  return is_class ? "classification" : "regression";
}

}  // namespace gallop::data

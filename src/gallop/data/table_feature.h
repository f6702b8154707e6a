#pragma once

#include <string>
#include <vector>

#include "gallop/config/visitor.h"

namespace gallop::data {

/// An input of a model that is computed from a column of a table, with its statistics over the
/// training split. A column may have several: the parts of a date, an indicator of missing values.
struct TableFeature {
  std::string column;
  /// number, boolean (0 or 1), date (one part of it), missing (1 where the value is missing),
  /// category (an index) or one-hot (a 0 or 1 for each index).
  std::string kind = "number";
  /// For a date: "days", "month", "day", "weekday" or "seconds". For an indicator: "boolean" if the
  /// column has such values.
  std::string part;
  /// For a date: "year-first", "day-first" or "month-first". For a number whose format the training
  /// file shows: "point", "point-thousands", "comma" or "comma-thousands".
  std::string format;
  double fill = 0;                  ///< The value that replaces missing ones.
  std::vector<double> quantiles{};  ///< For a number that is transformed by its quantiles.
  /// Boundaries of bins of about equally many transformed values, ascending.
  std::vector<double> bins{};
  /// For a category: value i has index i + 1; missing and unknown values have index 0.
  std::vector<std::string> categories{};

  bool is_category() const { return kind == "category"; }
  /// The number of elements of the field "features": none for a category.
  size_t width() const;
};

void visit(config::Visitor& visitor, TableFeature& feature);

}  // namespace gallop::data

#include "gallop/data/table_feature.h"

namespace gallop::data {

size_t TableFeature::width() const {
  if (is_category()) return 0;
  return kind == "one-hot" ? categories.size() + 1 : 1;
}

void visit(config::Visitor& visitor, TableFeature& feature) {
  visitor.field({.name = "column", .help = "column of the table"}, feature.column);
  visitor.field({.name = "kind",
                 .help = "what is computed from it",
                 .choices = {"number", "boolean", "date", "missing", "category", "one-hot"}},
                feature.kind);
  visitor.field({.name = "part", .help = "part of a date"}, feature.part);
  visitor.field({.name = "format", .help = "order of the parts of a date"}, feature.format);
  visitor.field({.name = "fill", .help = "value in place of missing ones"}, feature.fill);
  visitor.field({.name = "quantiles", .help = "quantiles of the training split"},
                feature.quantiles);
  visitor.field({.name = "bins", .help = "boundaries of the bins"}, feature.bins);
  visitor.field({.name = "categories", .help = "values by their index"}, feature.categories);
}

}  // namespace gallop::data

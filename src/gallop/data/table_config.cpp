#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/table/csv_records.h"
#include "gallop/data/table_options.h"

namespace gallop::data {

namespace {

char separator_of(const std::string& text) {
  if (text == "auto") return '\0';
  if (text == "tab" || text == "\\t") return '\t';
  if (text.size() == 1 && text != "\"" && text != "\n") return text.front();
  throw UsageError(
      fmt::format("data.separator is '{}', and must be one character, or tab", printable(text)));
}

}  // namespace

TableOptions table_options(const TableConfig& config) {
  return {.separator = separator_of(config.separator),
          .decimal = config.decimal,
          .header = config.header,
          .missing = config.missing,
          .day_first = config.day_first,
          .unscanned = config.ignore};
}

TableOptions table_options(const Signature& trained) {
  const char separator = separator_of(trained.separator);
  const bool is_usual = std::find(std::begin(kCsvSeparators), std::end(kCsvSeparators),
                                  separator) != std::end(kCsvSeparators);
  return {.separator = is_usual ? '\0' : separator,
          .header = trained.header,
          .missing = trained.missing};
}

void visit(config::Visitor& visitor, TableConfig& config) {
  visitor.field({.name = "target", .help = "column to predict; empty: targets, or the last one"},
                config.target);
  visitor.field({.name = "targets", .help = "several columns to predict"}, config.targets);
  visitor.field({.name = "ignore", .help = "columns to ignore, such as ids"}, config.ignore);
  visitor.field(
      {.name = "numbers", .help = "columns to read as numbers, regardless of their detected type"},
      config.numbers);
  visitor.field({.name = "categories", .help = "columns whose values are categories"},
                config.categories);
  visitor.field({.name = "dates", .help = "columns whose values are dates"}, config.dates);
  visitor.field({.name = "missing",
                 .help = "texts that stand for missing values, besides NA, nan, null, ? and such"},
                config.missing);
  visitor.field({.name = "weight", .help = "column of the weights of the rows in the loss"},
                config.weight);
  visitor.field(
      {.name = "separator", .help = "field separator: one character, or tab; auto: detected"},
      config.separator);
  visitor.field({.name = "decimal",
                 .help = "decimal mark of numbers; auto: detected",
                 .choices = {"auto", "point", "comma"}},
                config.decimal);
  visitor.field(
      {.name = "header",
       .help = "whether the first line names the columns; auto: unless it has only numbers",
       .choices = {"auto", "yes", "no"}},
      config.header);
  visitor.field({.name = "day_first", .help = "dates such as 01/02/2024 begin with the day"},
                config.day_first);
  visitor.field({.name = "transform",
                 .help = "transform of numbers: to mean 0 and deviation 1, or by their quantiles "
                         "to a normal distribution",
                 .choices = {"standard", "quantile", "none"}},
                config.transform);
  visitor.field({.name = "encoding",
                 .help = "encoding of categories: as ones and zeros, or as an index, which models "
                         "for tables embed; auto: what the model reads",
                 .choices = {"auto", "one-hot", "index"}},
                config.encoding);
  visitor.field({.name = "standardize_targets",
                 .help = "train a regression on targets of mean 0 and deviation 1; metrics and "
                         "predictions are in the original units"},
                config.standardize_targets);
}

void visit(config::Visitor& visitor, CsvConfig& config) {
  visitor.field({.name = "targets", .help = "columns to predict; none: the last one"},
                config.targets);
  visitor.field({.name = "ignore", .help = "columns to ignore, such as ids"}, config.ignore);
  visitor.field({.name = "separator", .help = "field separator: one character, or tab"},
                config.separator);
}

}  // namespace gallop::data

#include <algorithm>
#include <numeric>

#include "gallop/data/table.h"
#include "gallop/data/table/csv_table.h"
#include "gallop/data/table_samples.h"

namespace gallop::data {

namespace {

// Those of runs that only know columns of numbers.
std::vector<TableFeature> features_of(const Signature& trained) {
  if (!trained.features.empty()) return trained.features;
  std::vector<TableFeature> features;
  for (const std::string& column : trained.columns) {
    features.push_back({.column = column, .kind = "number", .part = {}, .format = {}});
  }
  return features;
}

}  // namespace

std::unique_ptr<Samples> table_rows(const std::string& file, const Signature& trained) {
  CsvTable csv(file, {.missing = trained.missing});
  const std::vector<TableFeature> features = features_of(trained);
  std::vector<ColumnType> types(csv.names().size(), {.kind = ColumnKind::kIgnored});
  for (const TableFeature& feature : features) {
    const ColumnType type = column_type(feature);
    ColumnType& known = types[csv.find(feature.column)];
    if (feature.kind != "missing" || known.kind == ColumnKind::kIgnored) known = type;
  }
  SkipPolicy skips(/*skips=*/false);
  const Table table = csv.read(types, skips);
  const bool is_class = trained.task == "classification";
  const size_t outputs =
      trained.task == "multi-label" ? trained.classes.size() : trained.targets.size();
  std::vector<int64_t> rows(table.lines.size());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return std::make_unique<TableSamples>(
      file, encode(table, features, {trained.mean, trained.deviation}),
      TableTargets{.is_class = is_class, .columns = is_class ? 1 : outputs}, std::vector<float>(),
      table.lines, rows);
}

std::vector<std::string> table_endings() { return {".csv", ".tsv", ".csv.gz", ".tsv.gz"}; }

bool is_table_file(const std::string& file) {
  const std::vector<std::string> endings = table_endings();
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& ending) { return file.ends_with(ending); });
}

int64_t count_lines(const std::string& file) {
  const std::string content = read_table_file(file);
  return std::count(content.begin(), content.end(), '\n');
}

}  // namespace gallop::data

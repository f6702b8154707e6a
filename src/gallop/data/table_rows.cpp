#include <algorithm>
#include <numeric>

#include "gallop/data/data_file.h"
#include "gallop/data/parquet_file.h"
#include "gallop/data/table.h"
#include "gallop/data/table/table_reader.h"
#include "gallop/data/table_options.h"
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
  TableReader reader({file}, table_options(trained));
  const std::vector<TableFeature> features = features_of(trained);
  std::vector<std::string> columns;
  for (const TableFeature& feature : features) columns.push_back(feature.column);
  reader.scan_only(columns);
  std::vector<ColumnType> types(reader.names().size(), {.kind = ColumnKind::kIgnored});
  for (const TableFeature& feature : features) {
    const ColumnType type = column_type(feature);
    ColumnType& known = types[reader.find(feature.column)];
    if (feature.kind != "missing" || known.kind == ColumnKind::kIgnored) known = type;
  }
  SkipPolicy skips(/*skips=*/false);
  const Table table = reader.read(types, skips);
  const bool is_class = trained.task == "classification";
  const size_t outputs =
      trained.task == "multi-label" ? trained.classes.size() : trained.targets.size();
  std::vector<int64_t> rows(table.lines.size());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return std::make_unique<TableSamples>(
      table, encode(table, features, {trained.mean, trained.deviation}),
      TableTargets{.is_class = is_class, .columns = is_class ? 1 : outputs}, std::vector<float>(),
      rows);
}

std::vector<std::string> table_endings() {
  return {".csv", ".tsv", ".csv.gz", ".tsv.gz", ".jsonl", ".jsonl.gz", ".parquet"};
}

bool is_table_file(const std::string& file) {
  const std::vector<std::string> endings = table_endings();
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& ending) { return file.ends_with(ending); });
}

int64_t count_rows(const std::vector<std::string>& files) {
  int64_t rows = 0;
  for (const std::string& file : files) {
    if (file.ends_with(".parquet")) {
      const auto parquet = open_parquet(file);
      const std::vector<int64_t>& groups = parquet->group_rows();
      rows = std::accumulate(groups.begin(), groups.end(), rows);
    } else {
      const std::string content = read_data_file(file);
      rows += std::count(content.begin(), content.end(), '\n');
    }
  }
  return rows;
}

}  // namespace gallop::data

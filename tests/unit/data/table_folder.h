#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/resolve.h"
#include "gallop/data/table.h"
#include "gallop/data/table/table_reader.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"

namespace gallop::data {

/// Reads tables that a test writes into a folder.
class Tables : public DataFolder {
 protected:
  std::string add(const std::string& text, const std::string& name = "a.csv") {
    folder.add(name, text);
    return folder.name() + "/" + name;
  }
  Table read(const std::string& text, const TableOptions& given = {}) {
    return read_file(add(text), given);
  }
  Table read_file(const std::string& path, const TableOptions& given = {}) {
    TableReader file({path}, given);
    std::vector<ColumnType> types;
    for (const ColumnScan& scan : file.scan()) types.push_back(scan.type);
    notes = file.notes();
    SkipPolicy skips(/*skips=*/false);
    return file.read(types, skips);
  }
  std::vector<double> numbers(const std::string& text, const TableOptions& given = {}) {
    const Table table = read(text, given);
    EXPECT_EQ(table.columns[0].type.kind, ColumnKind::kNumber) << text;
    return table.columns[0].numbers;
  }
  std::vector<std::string> categories(const std::string& text, size_t column = 0) {
    const Table table = read(text);
    EXPECT_EQ(table.columns[column].type.kind, ColumnKind::kCategory) << text;
    std::vector<std::string> values;
    for (const int32_t code : table.columns[column].codes) {
      values.push_back(code < 0 ? "(missing)"
                                : table.columns[column].values[static_cast<size_t>(code)]);
    }
    return values;
  }
  std::string error_of(const std::string& text) {
    return data_error([&] { read(text); });
  }
  std::unique_ptr<DataModule> open(const std::string& text, const TableConfig& table) {
    config.path = add(text);
    return open_table(table, context());
  }
  // Empty if there is none.
  std::string usage_error(const std::string& text, const TableConfig& table) {
    try {
      open(text, table);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }

  std::vector<std::string> notes;
};

}  // namespace gallop::data

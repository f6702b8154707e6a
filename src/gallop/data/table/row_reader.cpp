#include "gallop/data/table/row_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_file.h"
#include "gallop/data/table/csv_rows.h"
#include "gallop/data/table/json_rows.h"
#include "gallop/data/table/parquet_rows.h"

namespace gallop::data {

namespace {

/// The rows of one table file after the other.
class ShardedRows final : public RowReader {
 public:
  explicit ShardedRows(std::vector<std::unique_ptr<RowReader>> shards)
      : shards_(std::move(shards)) {
    names_ = shards_.front()->names();
    for (const auto& shard : shards_) {
      files_.push_back(shard->files().front());
      for (const std::string& note : shard->notes()) notes_.push_back(note);
      if (shard->names() == names_) continue;
      throw DataError(fmt::format("{}: has the columns {}, but {} has {}", printable(files_.back()),
                                  printable(join_names(shard->names(), "and")),
                                  printable(files_.front()), printable(join_names(names_, "and"))));
    }
  }

  size_t file_index() const override { return at_; }
  bool has_semicolons() const override { return shards_.front()->has_semicolons(); }
  bool has_bytes(size_t column) const override { return shards_.front()->has_bytes(column); }
  std::vector<std::string> classes(size_t column) const override {
    return shards_.front()->classes(column);
  }
  void rewind(const std::vector<bool>& selected) override {
    selected_ = selected;
    at_ = 0;
    shards_[0]->rewind(selected_);
  }
  bool next(std::vector<Cell>& cells, SkipPolicy* skips) override {
    while (!shards_[at_]->next(cells, skips)) {
      if (at_ + 1 == shards_.size()) return false;
      shards_[++at_]->rewind(selected_);
    }
    return true;
  }
  int64_t line() const override { return shards_[at_]->line(); }
  std::string place(const Cell& cell) const override { return shards_[at_]->place(cell); }

 private:
  std::vector<std::unique_ptr<RowReader>> shards_;
  std::vector<bool> selected_;
  size_t at_ = 0;
};

std::unique_ptr<RowReader> open_file(const std::string& file, const TableOptions& options) {
  if (file.ends_with(".parquet")) return std::make_unique<ParquetRows>(file);
  if (file.ends_with(".jsonl") || file.ends_with(".jsonl.gz")) {
    return std::make_unique<JsonRows>(file);
  }
  return std::make_unique<CsvRows>(file, options);
}

}  // namespace

size_t RowReader::find(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end() || name.empty()) refuse_column(files_.front(), name, names_);
  return static_cast<size_t>(found - names_.begin());
}

std::string RowReader::place(const Cell& /*cell*/) const {
  return fmt::format("{}:{}", printable(files_[file_index()]), line());
}

std::unique_ptr<RowReader> open_rows(const std::vector<std::string>& files,
                                     const TableOptions& options) {
  std::vector<std::unique_ptr<RowReader>> shards;
  for (const std::string& file : files) shards.push_back(open_file(file, options));
  if (shards.size() == 1) return std::move(shards.front());
  return std::make_unique<ShardedRows>(std::move(shards));
}

}  // namespace gallop::data

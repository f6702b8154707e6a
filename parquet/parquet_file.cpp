// libgallop_parquet.so: the part of Gallop that needs Apache Arrow. The program loads it when it
// opens a Parquet file.

#include "gallop/data/parquet_file.h"

#include <mutex>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/statistics.h>

#include "gallop/base/error.h"
#include "parquet/value_text.h"

namespace gallop::data {

namespace {

void require(const arrow::Status& status) {
  if (!status.ok()) throw DataError(status.message());
}

template <typename T>
T value_of(arrow::Result<T> result) {
  require(result.status());
  return std::move(result).ValueUnsafe();
}

/// The Arrow type of a leaf, and the fields that lead to it.
struct Leaf {
  std::shared_ptr<arrow::DataType> type;
  bool is_list = false;
  std::string unread;
};

/// Collects the leaves of a schema in the order of Parquet's columns.
class Leaves {
 public:
  explicit Leaves(const arrow::Schema& schema) {
    for (const auto& field : schema.fields()) add(field->name(), *field->type(), {});
  }
  std::vector<ParquetColumn> columns;

 private:
  void add(const std::string& name, const arrow::DataType& type, Leaf above) {
    if (type.id() == arrow::Type::STRUCT) {
      if (above.is_list) above.unread = "it is a list of structs";
      for (const auto& field : type.fields())
        add(name + "." + field->name(), *field->type(), above);
      return;
    }
    if (is_list_type(type.id())) {
      if (above.is_list) above.unread = "it is a list of lists";
      above.is_list = true;
      return add(name, *type.field(0)->type(), above);
    }
    if (type.id() == arrow::Type::MAP) {
      above.unread = "it is a map";
      for (const auto& field : type.field(0)->type()->fields()) {
        add(name + "." + field->name(), *field->type(), above);
      }
      return;
    }
    if (above.unread.empty() && !has_text(type)) above.unread = "its type is " + type.ToString();
    columns.push_back(
        {.name = name, .type = type.ToString(), .is_list = above.is_list, .unread = above.unread});
  }
};

class ArrowFile final : public ParquetFile {
 public:
  explicit ArrowFile(std::string path)
      : path_(std::move(path)),
        bytes_(value_of(arrow::io::MemoryMappedFile::Open(path_, arrow::io::FileMode::READ))) {
    const auto reader = new_reader();
    std::shared_ptr<arrow::Schema> schema;
    require(reader->GetSchema(&schema));
    columns_ = Leaves(*schema).columns;
    if (schema->metadata() != nullptr) {
      huggingface_ = schema->metadata()->Get("huggingface").ValueOr(std::string());
    }
    metadata_ = reader->parquet_reader()->metadata();
    if (static_cast<size_t>(metadata_->num_columns()) != columns_.size()) {
      throw DataError("its schema cannot be read as columns");
    }
    for (int i = 0; i < metadata_->num_row_groups(); ++i) {
      group_rows_.push_back(metadata_->RowGroup(i)->num_rows());
    }
  }

  const std::vector<ParquetColumn>& columns() const override { return columns_; }
  const std::vector<int64_t>& group_rows() const override { return group_rows_; }
  const std::string& huggingface() const override { return huggingface_; }

  ParquetValues read(size_t group, size_t column) const override {
    try {
      const auto table =
          value_of(new_reader()->ReadRowGroup(static_cast<int>(group), {static_cast<int>(column)}));
      ParquetValues values;
      for (const auto& chunk : table->column(0)->chunks()) append_leaf(*chunk, values);
      return values;
    } catch (const std::exception& error) {
      throw DataError(path_ + ": " + error.what());
    }
  }

  bool may_be_missing(size_t group, size_t column) const override {
    const auto chunk =
        metadata_->RowGroup(static_cast<int>(group))->ColumnChunk(static_cast<int>(column));
    const auto statistics = chunk->is_stats_set() ? chunk->statistics() : nullptr;
    return !statistics || !statistics->HasNullCount() || statistics->null_count() > 0;
  }

 private:
  // Only one field of each struct was read.
  void append_leaf(const arrow::Array& array, ParquetValues& values) const {
    if (array.type_id() != arrow::Type::STRUCT) return append_texts(array, values);
    const auto& fields = static_cast<const arrow::StructArray&>(array);
    append_leaf(*value_of(fields.GetFlattenedField(0)), values);
  }

  // Arrow's readers are not made for several threads, but the loader's read row groups at a time.
  std::unique_ptr<parquet::arrow::FileReader> new_reader() const {
    parquet::ArrowReaderProperties properties;
    properties.set_use_threads(false);
    properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    require(builder.Open(bytes_, parquet::default_reader_properties(), metadata_));
    builder.properties(properties);
    return value_of(builder.Build());
  }

  std::string path_;
  std::shared_ptr<arrow::io::MemoryMappedFile> bytes_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<ParquetColumn> columns_;
  std::vector<int64_t> group_rows_;
  std::string huggingface_;
};

}  // namespace

}  // namespace gallop::data

extern "C" gallop::data::ParquetFile* gallop_open_parquet(const char* path, std::string& error) {
  try {
    return new gallop::data::ArrowFile(path);
  } catch (const std::exception& problem) {
    error = problem.what();
    return nullptr;
  }
}

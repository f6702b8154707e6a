#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gallop::data {

/// Values of a column as text, or as bytes if the column has bytes.
struct ParquetValues {
  std::string bytes;         ///< Of all values, one after the other.
  std::vector<size_t> ends;  ///< Of each value in `bytes`.
  std::vector<bool> is_missing;

  size_t size() const { return ends.size(); }
  std::string_view operator[](size_t row) const {
    const size_t begin = row == 0 ? 0 : ends[row - 1];
    return std::string_view(bytes).substr(begin, ends[row] - begin);
  }
};

/// A column of a Parquet file: a leaf of its schema.
struct ParquetColumn {
  std::string name;  ///< "image.bytes" for a field of a struct.
  std::string type;  ///< As Arrow prints it.
  /// Values are lists, whose elements each follow a kListSeparator.
  bool is_list = false;
  std::string unread;  ///< Why its values cannot be text; empty if they can.
};

/// An open Parquet file, implemented by libgallop_parquet.so. Thread-safe.
class ParquetFile {
 public:
  virtual ~ParquetFile() = default;

  virtual const std::vector<ParquetColumn>& columns() const = 0;
  virtual const std::vector<int64_t>& group_rows() const = 0;  ///< Of each row group.
  /// The value of the schema's key `huggingface`; empty if there is none.
  virtual const std::string& huggingface() const = 0;
  /// Reads a column of a row group. Numbers are written as pandas does in CSV, dates and times as
  /// in ISO 8601. Throws DataError that names the file.
  virtual ParquetValues read(size_t group, size_t column) const = 0;
  /// Whether a column of a row group may have missing values, by the file's statistics.
  virtual bool may_be_missing(size_t group, size_t column) const = 0;
};

/// Opens a Parquet file by the library libgallop_parquet.so, which is loaded when it is first
/// needed: beside the program, or in the folder lib beside the program's. Throws DataError if the
/// file is damaged, UsageError that names the remedy if the library is missing.
std::shared_ptr<const ParquetFile> open_parquet(const std::string& path);

/// The function that the library exports under this name. On failure it returns null and sets
/// `error`.
using OpenParquet = ParquetFile* (*)(const char* path, std::string& error);
inline constexpr const char* kOpenParquet = "gallop_open_parquet";

}  // namespace gallop::data

#pragma once

#include <cstdint>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gallop/data/parquet_file.h"

namespace gallop::data {

/// Columns of the row groups of Parquet files, kept in memory up to a limit; those that were used
/// longest ago are dropped first. Thread-safe.
class ParquetGroups {
 public:
  ParquetGroups(std::vector<std::string> files, int64_t limit_bytes);

  const std::vector<std::string>& paths() const { return paths_; }
  const ParquetFile& file(size_t index) const { return *files_[index]; }
  /// How many groups to read together, of those that fit in the limit; 0 if all do.
  int64_t window() const;

  /// Reads a group at its first use; other threads that need it wait. Throws DataError.
  std::shared_ptr<const ParquetValues> get(size_t file, size_t group, size_t column) const;

 private:
  struct Key {
    size_t file, group, column;
    auto operator<=>(const Key&) const = default;
  };
  using Values = std::shared_ptr<const ParquetValues>;
  struct Entry {
    std::shared_future<Values> values;
    std::list<Key>::iterator use;
    int64_t bytes = 0;  // 0 while it is read.
  };

  void drop_old() const;

  std::vector<std::string> paths_;
  std::vector<std::shared_ptr<const ParquetFile>> files_;
  int64_t limit_, total_bytes_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<Key, Entry> entries_;
  mutable std::list<Key> uses_;  // The latest first.
  mutable int64_t bytes_ = 0;
};

}  // namespace gallop::data

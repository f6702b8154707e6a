#include "gallop/data/parquet_groups.h"

#include <algorithm>
#include <utility>

#include "gallop/base/file.h"

namespace gallop::data {

ParquetGroups::ParquetGroups(std::vector<std::string> files, int64_t limit_bytes)
    : paths_(std::move(files)), limit_(limit_bytes) {
  for (const std::string& path : paths_) {
    files_.push_back(open_parquet(path));
    total_bytes_ += static_cast<int64_t>(fs::file_size(path));
  }
}

int64_t ParquetGroups::window() const {
  if (total_bytes_ <= limit_) return 0;
  double groups = 0;
  for (const auto& file : files_) groups += static_cast<double>(file->group_rows().size());
  // Half of those that fit: the next window is read while the current one is used.
  const double share = static_cast<double>(limit_) / static_cast<double>(total_bytes_) / 2;
  return std::max<int64_t>(1, static_cast<int64_t>(share * groups));
}

std::shared_ptr<const ParquetValues> ParquetGroups::get(size_t file, size_t group,
                                                        size_t column) const {
  const Key key{file, group, column};
  std::promise<Values> promise;
  std::shared_future<Values> found;
  {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = entries_.try_emplace(key);
    Entry& entry = place->second;
    if (is_new) {
      entry.values = promise.get_future().share();
      entry.use = uses_.insert(uses_.begin(), key);
    } else {
      uses_.splice(uses_.begin(), uses_, entry.use);
      found = entry.values;
    }
  }
  if (found.valid()) return found.get();
  try {
    auto values = std::make_shared<const ParquetValues>(files_[file]->read(group, column));
    promise.set_value(values);
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(key);
    entry.bytes = static_cast<int64_t>(values->bytes.size() + values->ends.size() * sizeof(size_t));
    bytes_ += entry.bytes;
    drop_old();
    return values;
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    uses_.erase(entries_.at(key).use);
    entries_.erase(key);
    throw;
  }
}

void ParquetGroups::drop_old() const {
  for (auto old = uses_.end(); bytes_ > limit_ && old != uses_.begin();) {
    --old;
    const auto entry = entries_.find(*old);
    const bool is_only = old == uses_.begin();
    if (entry->second.bytes == 0 || is_only) continue;
    bytes_ -= entry->second.bytes;
    entries_.erase(entry);
    old = uses_.erase(old);
  }
}

}  // namespace gallop::data

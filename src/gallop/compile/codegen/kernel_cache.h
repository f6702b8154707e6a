#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::compile {

/// Libraries for the CPU and binaries for GPUs on disk, each under the key of what it was made
/// from, shared by all processes of the user. A file ends with a hash of its content, and nothing
/// without a good one is loaded.
class KernelCache {
 public:
  /// Makes the folder, for the user alone. Throws DeviceError where it cannot be written to, or
  /// where others may write to it.
  KernelCache(fs::path folder, int64_t max_bytes);

  /// The library under the key, kept in memory while the pointer lives; null where there is none. A
  /// damaged one is removed.
  std::shared_ptr<void> find(const std::string& key) const;

  /// Puts a library under all of these keys, durably and in one step each, then removes the least
  /// recently used ones beyond `max_bytes`. Throws DeviceError.
  void publish(const fs::path& library, const std::vector<std::string>& keys) const;

  /// The binary under the key; none where there is none. A damaged one is removed.
  std::optional<std::string> find_binary(const std::string& key) const;

  /// Puts a binary under the key, as publish() does.
  void publish_binary(const std::string& content, const std::string& key) const;

  const fs::path& folder() const { return folder_; }

 private:
  fs::path path_of(const std::string& key) const { return folder_ / (key + ".so"); }
  fs::path binary_of(const std::string& key) const { return folder_ / (key + ".gpu"); }
  void write(const std::string& content, const std::vector<fs::path>& paths) const;
  void remove_oldest() const;

  fs::path folder_;
  int64_t max_bytes_;
};

/// What names of folders begin with that are about to be filled.
inline constexpr const char* kNewFolder = "new-";
/// The same outside of a cache, in the folder for temporary files.
inline constexpr const char* kNewFolderElsewhere = "gallop-kernels-";

}  // namespace gallop::compile

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::compile {

/// Libraries for the CPU and binaries for GPUs on disk, each under a key that identifies its
/// source, shared by all processes of the user. A file ends with a hash of its content; files
/// with a wrong hash are not loaded.
class KernelCache {
 public:
  /// Creates the folder, accessible to this user only. Throws DeviceError if it is not writable, or
  /// if other users may write to it.
  KernelCache(fs::path folder, int64_t max_bytes);

  /// The library under the key, in memory while the pointer lives; null if there is none. A
  /// damaged one is removed.
  std::shared_ptr<void> find(const std::string& key) const;

  /// Stores a library under all of these keys, durably and each atomically, then removes the least
  /// recently used ones beyond `max_bytes`. Throws DeviceError.
  void publish(const fs::path& library, const std::vector<std::string>& keys) const;

  /// The binary under the key; empty if there is none. A damaged one is removed.
  std::optional<std::string> find_binary(const std::string& key) const;

  /// Stores a binary under the key, as publish() does.
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

/// Prefix of the names of folders that are being filled.
inline constexpr const char* kNewFolder = "new-";
/// The same outside of a cache, in the temporary directory.
inline constexpr const char* kNewFolderElsewhere = "gallop-kernels-";

}  // namespace gallop::compile

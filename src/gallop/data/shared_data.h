#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/base/shared_folder.h"
#include "gallop/data/bytes.h"
#include "gallop/data/shared_pieces.h"

namespace gallop::data {

/// A cache of the data that one user's processes on this machine have read and decoded, in files
/// of one folder, identified by their sources and by the program. If the folder or its file system
/// is unsuitable, all data is private to this process, and trouble() returns the reason.
/// Thread-safe.
class SharedData {
 public:
  /// Uses a folder that only this user can access.
  explicit SharedData(const fs::path& folder);
  /// Uses a SharedFolder in one of `places` and takes part in its management.
  SharedData(const std::vector<fs::path>& places, int64_t bytes);

  /// Returns the result of `make`, called by the first process that requests this identity while
  /// others wait for it. Throws what `make` throws.
  Block<uint8_t> content(const std::string& identity, const std::function<Bytes()>& make);

  /// Pieces that are computed individually on demand. Unused data is evicted to make room. Null if
  /// all data together would exceed `limit_bytes` or the free space of the file system.
  std::shared_ptr<const SharedPieces> pieces(const std::string& identity, int64_t count,
                                             int64_t piece_bytes, int64_t expected_bytes,
                                             int64_t limit_bytes);

  /// The first reason why something could not be shared; empty if there was none.
  std::string trouble() const;

 private:
  void open(const fs::path& folder);
  void note(const std::string& trouble);

  std::optional<SharedFolder> kept_;
  fs::path path_;
  FileDescriptor folder_;  // Locked as in use; closed if it is unusable.
  std::string program_;
  mutable std::mutex mutex_;
  std::string trouble_;
};

}  // namespace gallop::data

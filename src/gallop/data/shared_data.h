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

/// What processes of one user on this machine have read and decoded, in files of one folder, each
/// known by what it was made from and by the program that made it. Where the folder or its file
/// system is no place for it, everything is this process's own as without it, and trouble() says
/// why. Safe to use from many threads.
class SharedData {
 public:
  /// In a folder that is this user's alone.
  explicit SharedData(const fs::path& folder);
  /// In a SharedFolder, in which this then takes part.
  SharedData(const std::vector<fs::path>& places, int64_t bytes);

  /// What `make` gives, made by the first that asks for this identity; others wait for it. Throws
  /// what `make` throws.
  Block<uint8_t> content(const std::string& identity, const std::function<Bytes()>& make);

  /// Pieces that are made one by one as they are needed. Data that are no longer in use make room
  /// for these. Null where all data together would take more than `limit_bytes`, or more than the
  /// file system has left.
  std::shared_ptr<const SharedPieces> pieces(const std::string& identity, int64_t count,
                                             int64_t piece_bytes, int64_t expected_bytes,
                                             int64_t limit_bytes);

  /// The first reason why something could not be shared; empty where all could.
  std::string trouble() const;

 private:
  void open(const fs::path& folder);
  void note(const std::string& trouble);

  std::optional<SharedFolder> kept_;
  fs::path path_;
  FileDescriptor folder_;  // Locked as one that is in use; closed where it cannot be used.
  std::string program_;
  mutable std::mutex mutex_;
  std::string trouble_;
};

}  // namespace gallop::data

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gallop/base/file.h"

namespace gallop::data {

/// A file of pieces of equal length that processes of this machine map into memory, so that only
/// one copy exists. Each piece is written once, by the first process that needs it.
///
/// The file consists of a header, a table with one 64-bit number per piece, and the pieces. The
/// number is 0 until the piece is written and is the piece's hash afterwards. A process locks a
/// piece while it writes it, so that others wait instead of computing it too; the system releases
/// the lock if the process dies, and the next process computes the piece.
class SharedPieces {
 public:
  /// Identifies the contents of a file.
  struct Layout {
    std::string identity;  ///< 32 characters that identify the contents.
    int64_t pieces = 0;
    int64_t piece_bytes = 0;
    int64_t expected_bytes = 0;  ///< Total size of all pieces that will be written.
  };

  /// Creates an empty file. Throws DeviceError.
  static FileDescriptor create(const fs::path& path, const Layout& layout);
  /// The layout of a file; nullopt if it is incomplete or of another version.
  static std::optional<Layout> read_layout(const FileDescriptor& file);
  /// Maps a file whose layout was read. Throws DeviceError.
  SharedPieces(FileDescriptor file, const Layout& layout);
  ~SharedPieces();
  SharedPieces(const SharedPieces&) = delete;
  SharedPieces& operator=(const SharedPieces&) = delete;

  /// Returns the piece, computed by `make` if it does not exist yet. `stamp` identifies the state
  /// of its source. Null if it is unavailable: damaged, made from another state, or not writable.
  /// Thread-safe; throws what `make` throws.
  const uint8_t* get(int64_t piece, uint64_t stamp,
                     const std::function<const uint8_t*()>& make) const;
  /// Returns the piece if it exists and is intact, otherwise null.
  const uint8_t* find(int64_t piece, uint64_t stamp) const;
  /// Returns a piece that get() has already returned.
  const uint8_t* at(int64_t piece) const {
    return pieces_ + static_cast<size_t>(piece) * static_cast<size_t>(piece_bytes_);
  }

 private:
  uint64_t mark_of(const uint8_t* piece, uint64_t stamp) const;
  bool write(int64_t piece, const uint8_t* from) const;

  FileDescriptor file_;
  int64_t piece_bytes_;
  int64_t begin_;  // Offset of the first piece in the file.
  size_t mapped_table_, mapped_pieces_;
  uint64_t* table_ = nullptr;
  // Mapped read-only, so that no process can modify the pieces by mistake.
  const uint8_t* pieces_ = nullptr;
};

}  // namespace gallop::data

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gallop/base/file.h"

namespace gallop::data {

/// A file of pieces of one length that processes of this machine map into memory, so that one copy
/// exists. Each piece is written once, by the first process that needs it, and never again.
///
/// The file consists of a header, a table with one 64-bit number a piece, and the pieces. The
/// number is 0 until the piece is written; then it is the piece's hash. A process locks a piece
/// while it writes it, so that others wait instead of computing it, too; the system releases the
/// lock if the process dies, and the next one computes the piece.
class SharedPieces {
 public:
  /// The identification of a file.
  struct Layout {
    std::string identity;  ///< 32 characters that identify the contents.
    int64_t pieces = 0;
    int64_t piece_bytes = 0;
    int64_t expected_bytes = 0;  ///< Total of all pieces that will be written.
  };

  /// Makes an empty file. Throws DeviceError.
  static FileDescriptor create(const fs::path& path, const Layout& layout);
  /// The layout of a file, if it is complete and of this version.
  static std::optional<Layout> read_layout(const FileDescriptor& file);
  /// Maps a file whose layout was read. Throws DeviceError.
  SharedPieces(FileDescriptor file, const Layout& layout);
  ~SharedPieces();
  SharedPieces(const SharedPieces&) = delete;
  SharedPieces& operator=(const SharedPieces&) = delete;

  /// The piece, computed by `make` if it does not exist yet. `stamp` identifies the state of its
  /// source. Null if it is unavailable: damaged, made from another state, or not writable. Safe to
  /// call from many threads; throws what `make` throws.
  const uint8_t* get(int64_t piece, uint64_t stamp,
                     const std::function<const uint8_t*()>& make) const;
  /// The piece if it exists and is intact; else null.
  const uint8_t* find(int64_t piece, uint64_t stamp) const;
  /// A piece that get() has returned.
  const uint8_t* at(int64_t piece) const {
    return pieces_ + static_cast<size_t>(piece) * static_cast<size_t>(piece_bytes_);
  }

 private:
  uint64_t mark_of(const uint8_t* piece, uint64_t stamp) const;
  bool write(int64_t piece, const uint8_t* from) const;

  FileDescriptor file_;
  int64_t piece_bytes_;
  int64_t begin_;  // Of the first piece in the file.
  size_t mapped_table_, mapped_pieces_;
  uint64_t* table_ = nullptr;
  // Mapped read-only, so that no process can change them by mistake.
  const uint8_t* pieces_ = nullptr;
};

}  // namespace gallop::data

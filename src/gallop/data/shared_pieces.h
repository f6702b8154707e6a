#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gallop/base/file.h"

namespace gallop::data {

/// A file of pieces of one length that processes of this machine map into their memory, where there
/// is one copy of it. Each piece is written once, by whoever needs it first, and never again.
///
/// The file is a header, a table with one 64-bit number a piece, and the pieces. The number is 0
/// until the piece is written; then it is the piece's hash. A process locks a piece while it writes
/// it, so that others wait instead of making it, too; the system gives the lock up where the
/// process dies, and the next makes the piece again.
class SharedPieces {
 public:
  /// What a file is known by.
  struct Layout {
    std::string identity;  ///< 32 letters: what is in it.
    int64_t pieces = 0;
    int64_t piece_bytes = 0;
    int64_t expected_bytes = 0;  ///< Of all pieces that will be written.
  };

  /// Makes an empty file. Throws DeviceError.
  static FileDescriptor create(const fs::path& path, const Layout& layout);
  /// What a file is, where it is whole and of this version.
  static std::optional<Layout> read_layout(const FileDescriptor& file);
  /// Maps a file whose layout was read. Throws DeviceError.
  SharedPieces(FileDescriptor file, const Layout& layout);
  ~SharedPieces();
  SharedPieces(const SharedPieces&) = delete;
  SharedPieces& operator=(const SharedPieces&) = delete;

  /// The piece, which `make` gives where it is not there yet. `stamp` stands for the state of what
  /// it is made from. Null where it cannot be had from here: it is damaged, made from another
  /// state, or could not be written. Safe to call from many threads; throws what `make` throws.
  const uint8_t* get(int64_t piece, uint64_t stamp,
                     const std::function<const uint8_t*()>& make) const;
  /// The piece where it is there and as it was written; null elsewhere.
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
  const uint8_t* pieces_ = nullptr;  // Mapped for reading: no process can change them by mistake.
};

}  // namespace gallop::data

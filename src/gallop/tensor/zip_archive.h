#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// A file in a zip archive.
struct ZipEntry {
  std::string name;
  int64_t offset = 0;  ///< Of its content in the archive, from the archive's start.
  int64_t bytes = 0;   ///< Of its content, without compression.
  int64_t stored = 0;  ///< In the archive: as many, unless it is compressed.
  bool is_deflated = false;
  uint32_t crc32 = 0;  ///< As stated by the archive's central directory.
};

/// A zip archive (.ZIP File Format Specification 6.3, with zip64), mapped into memory. Not
/// thread-safe.
class ZipArchive {
 public:
  /// What torch.save(), torch.export.save() and numpy.savez() write, and what
  /// numpy.savez_compressed() may write as well.
  enum class Methods { kStored, kStoredOrDeflated };

  /// Maps the file and validates its directory: one disk, unique relative names, no entries of
  /// other methods or encrypted ones, which do not overlap, local headers that agree with the
  /// directory. Throws DataError with the file's name otherwise. Folders are not listed.
  explicit ZipArchive(const fs::path& path, Methods methods = Methods::kStored);

  const fs::path& path() const { return file_.path(); }
  /// Ordered by their position in the file.
  const std::vector<ZipEntry>& entries() const { return entries_; }
  std::vector<std::string> names() const;
  /// Null if there is no such entry.
  const ZipEntry* find(std::string_view name) const;

  /// The content, valid as long as the archive, which keeps that of compressed entries in memory.
  /// Throws DataError, when called for the first time, if the content is damaged or its CRC-32
  /// differs from the stated one; `description` replaces "entry 'NAME'" in the message.
  std::string_view bytes(const ZipEntry& entry, std::string_view description = {});

 private:
  struct Directory;
  struct CentralHeader;
  struct Extent;
  [[noreturn]] void fail(const std::string& what) const;
  Directory find_directory() const;
  Directory read_end64(const Directory& end) const;
  static bool read_zip64(std::string_view extra, CentralHeader& header);
  static std::optional<CentralHeader> read_central_header(std::string_view bytes);
  std::vector<ZipEntry> read_directory(const Directory& directory) const;
  void check_kind(const CentralHeader& header) const;
  ZipEntry entry_of(const CentralHeader& header) const;
  int64_t end_of_local_header(const CentralHeader& entry) const;
  void check_overlaps(std::vector<Extent> extents) const;

  std::string_view inflated(const ZipEntry& entry, const std::string& description);

  MappedFile file_;
  Methods methods_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<size_t, std::string> inflated_;  // Contents of entries.
  std::unordered_map<std::string_view, size_t> by_name_;
  std::vector<bool> is_checked_;
};

}  // namespace gallop

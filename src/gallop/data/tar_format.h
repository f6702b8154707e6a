#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::data {

/// The type of a member of a tar archive.
enum class TarKind {
  kFile,
  kFolder,
  kHardLink,
  kSymbolicLink,
  kSparse,  ///< A file stored without its holes.
  kOther,   ///< A device, a pipe, or an unknown type.
};

struct TarMember {
  std::string name;
  int64_t offset = 0;  ///< Offset of its content in the archive.
  int64_t size = 0;
  TarKind kind = TarKind::kFile;
  std::string link{};  ///< Target of a link, as stored in the archive.
};

/// Iterates over the members of a tar archive, reading only headers: ustar and older formats, GNU
/// long names, pax headers (POSIX.1-2001).
class TarReader {
 public:
  /// Both must outlive the reader; `path` is for messages. Throws DataError if it is not a file.
  TarReader(const FileDescriptor& file, const fs::path& path);

  /// Returns the next member, or nullopt at the archive's end marker. Throws DataError that names
  /// the archive and the member if it is truncated or damaged.
  std::optional<TarMember> next();

 private:
  // Fields of extension headers that precede a member's own header.
  struct Extended {
    std::optional<std::string> name;
    std::optional<std::string> link;
    std::optional<int64_t> size;
    bool sparse = false;
  };

  const char* window(int64_t offset, int64_t bytes);
  std::string read_text(int64_t bytes, int64_t limit, const char* what);
  void read_pax(std::string_view records, Extended& extended) const;
  bool read_extension(char type, int64_t size, Extended& extended);
  void skip_sparse_map(bool is_extended);
  void check_end();
  int64_t end_of_content(int64_t size, const std::string& name) const;
  TarMember read_member(char type, std::string name, int64_t size, const Extended& extended,
                        std::string link);
  [[noreturn]] void fail(const std::string& why) const;

  const FileDescriptor& file_;
  const fs::path& path_;
  int64_t file_size_ = 0;
  int64_t at_ = 0;
  std::string last_name_;
  std::vector<char> buffer_;
  int64_t buffer_at_ = 0;
  int64_t buffer_used_ = 0;
};

}  // namespace gallop::data

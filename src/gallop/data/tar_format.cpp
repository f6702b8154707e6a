#include "gallop/data/tar_format.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "gallop/base/checked.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kWindow = 1 << 15;  // One read covers many small members.
constexpr int64_t kMaxName = 1 << 16;
constexpr int64_t kMaxPax = 1 << 20;
constexpr int64_t kLongestMagic = 6;  // Bytes at the start of compressed files.

// How a file is compressed that is no tar archive, with the remedy; empty if it is not.
std::string compression_of(std::string_view start) {
  struct Kind {
    std::string_view magic;
    const char *name, *remedy;
  };
  static constexpr Kind kKinds[] = {{{"\x1F\x8B", 2}, "gzip", "gunzip"},
                                    {{"BZh", 3}, "bzip2", "bunzip2"},
                                    {{"\xFD\x37zXZ\0", 6}, "xz", "unxz"},
                                    {{"\x28\xB5\x2F\xFD", 4}, "zstd", "unzstd"}};
  for (const auto& [magic, name, remedy] : kKinds) {
    if (!start.starts_with(magic)) continue;
    return fmt::format(
        ", but a file that {} has compressed; images are read in place, so decompress it first: {}",
        name, remedy);
  }
  return {};
}

// The bytes of a header field, by position and length.
std::string_view field(const char* header, size_t at, size_t bytes) { return {header + at, bytes}; }

std::string text_field(const char* header, size_t at, size_t bytes) {
  const std::string_view raw = field(header, at, bytes);
  return std::string(raw.substr(0, raw.find('\0')));
}

// Parses octal digits or, if the first bit is set, a big-endian binary number (GNU).
std::optional<int64_t> number_field(const char* header, size_t at, size_t bytes) {
  std::string_view raw = field(header, at, bytes);
  int64_t value = 0;
  if ((static_cast<unsigned char>(raw[0]) & 0x80) != 0) {
    if (raw[0] != '\x80') return std::nullopt;
    for (const char c : raw.substr(1)) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  while (raw.starts_with(' ')) raw.remove_prefix(1);
  while (!raw.empty() && (raw.back() == ' ' || raw.back() == '\0')) raw.remove_suffix(1);
  for (const char c : raw) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value << 3 | (c - '0');
  }
  return value;
}

bool is_zero(const char* block) {
  return std::all_of(block, block + kBlock, [](char c) { return c == '\0'; });
}

// The sum of all bytes with the checksum as spaces; some old programs summed signed bytes.
bool has_valid_checksum(const char* header) {
  constexpr size_t kAt = 148, kBytes = 8;
  const auto stated = number_field(header, kAt, kBytes);
  int64_t plain = 0, with_sign = 0;
  for (size_t i = 0; i < static_cast<size_t>(kBlock); ++i) {
    const char c = i >= kAt && i < kAt + kBytes ? ' ' : header[i];
    plain += static_cast<unsigned char>(c);
    with_sign += static_cast<signed char>(c);
  }
  return stated && (*stated == plain || *stated == with_sign);
}

std::string header_name(const char* header) {
  std::string name = text_field(header, 0, 100);
  // GNU's magic number has spaces, and other data in the place of the POSIX prefix.
  if (field(header, 257, 6) == std::string_view("ustar\0", 6)) {
    const std::string prefix = text_field(header, 345, 155);
    if (!prefix.empty()) name = prefix + "/" + name;
  }
  return name;
}

}  // namespace

TarReader::TarReader(const FileDescriptor& file, const fs::path& path)
    : file_(file), path_(path), buffer_(kWindow) {
  struct stat info = {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) fail("not a file");
  file_size_ = info.st_size;
}

void TarReader::fail(const std::string& why) const {
  throw DataError(fmt::format("{}: {}", printable(path_.string()), why));
}

// Returns bytes of the file, or null beyond its end. Valid until the next call.
const char* TarReader::window(int64_t offset, int64_t bytes) {
  if (bytes > file_size_ - offset) return nullptr;
  if (offset < buffer_at_ || offset + bytes > buffer_at_ + buffer_used_) {
    if (static_cast<int64_t>(buffer_.size()) < bytes) buffer_.resize(static_cast<size_t>(bytes));
    buffer_at_ = offset;
    buffer_used_ = std::min<int64_t>(static_cast<int64_t>(buffer_.size()), file_size_ - offset);
    if (!read_exactly(file_, path_, offset, buffer_.data(), buffer_used_)) {
      fail("became shorter while it was read");
    }
  }
  return buffer_.data() + (offset - buffer_at_);
}

std::string TarReader::read_text(int64_t bytes, int64_t limit, const char* what) {
  if (bytes > limit)
    fail(fmt::format("damaged: {} of {} at byte {}", what, format_bytes(bytes), at_));
  const char* text = window(at_, bytes);
  if (text == nullptr) fail(fmt::format("truncated in {} after member '{}'", what, last_name_));
  return {text, static_cast<size_t>(bytes)};
}

// The offset of the next header. The content must be complete, but its padding may be missing.
int64_t TarReader::end_of_content(int64_t size, const std::string& name) const {
  const auto end = checked_add(at_, size);
  if (!end || *end > file_size_) {
    fail(fmt::format("truncated in member '{}': it has {} bytes, the archive ends after {} of them",
                     printable(name), size, file_size_ - at_));
  }
  return std::min(file_size_, *end + (kBlock - *end % kBlock) % kBlock);
}

void TarReader::read_pax(std::string_view records, Extended& extended) const {
  while (!records.empty() && records[0] != '\0') {
    size_t length = 0;
    const auto parsed = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(parsed.ptr - records.data());
    if (parsed.ec != std::errc() || length > records.size() || length < digits + 3 ||
        records[digits] != ' ' || records[length - 1] != '\n') {
      fail(fmt::format("damaged pax header before byte {}", at_));
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos)
      fail(fmt::format("damaged pax header before byte {}", at_));
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path" && !extended.sparse) extended.name = std::string(value);
    if (key == "linkpath") extended.link = std::string(value);
    if (key.starts_with("GNU.sparse.")) extended.sparse = true;
    // The "path" next to it is generated by tar.
    if (key == "GNU.sparse.name") extended.name = std::string(value);
    if (key == "size") {
      const auto size = parse_number<int64_t>(value);
      if (!size || *size < 0) {
        fail(fmt::format("damaged pax header before byte {}: size '{}'", at_, printable(value)));
      }
      extended.size = size;
    }
    records.remove_prefix(length);
  }
}

// Zeros end an archive. Archives concatenated as files have members after them, which would
// silently be missing.
void TarReader::check_end() {
  for (; at_ + kBlock <= file_size_; at_ += kBlock) {
    const char* block = window(at_, kBlock);
    if (!is_zero(block) && has_valid_checksum(block)) {
      fail(fmt::format(
          "another archive follows at byte {}, behind the first one's end; join archives "
          "with 'tar --concatenate'",
          at_));
    }
  }
}

// Returns whether the header only describes the next member.
bool TarReader::read_extension(char type, int64_t size, Extended& extended) {
  if (type == 'L' || type == 'K') {
    std::string text = read_text(size, kMaxName, "a long name");
    (type == 'L' ? extended.name : extended.link) = text.substr(0, text.find('\0'));
  } else if (type == 'x') {
    read_pax(read_text(size, kMaxPax, "a pax header"), extended);
  }
  return type == 'L' || type == 'K' || type == 'x' || type == 'g';
}

// GNU's old sparse files store their map in blocks between header and content.
void TarReader::skip_sparse_map(bool is_extended) {
  constexpr size_t kIsExtended = 504;
  while (is_extended) {
    const char* block = window(at_, kBlock);
    if (block == nullptr) fail(fmt::format("truncated after member '{}'", printable(last_name_)));
    is_extended = block[kIsExtended] != 0;
    at_ += kBlock;
  }
}

TarMember TarReader::read_member(char type, std::string name, int64_t size,
                                 const Extended& extended, std::string link) {
  const bool is_file = type == '0' || type == '\0' || type == '7';
  TarMember member{.name = std::move(name), .kind = TarKind::kOther};
  if (extended.sparse || type == 'S') {
    member.kind = TarKind::kSparse;
  } else if (type == '5' || (is_file && member.name.ends_with('/'))) {
    member.kind = TarKind::kFolder;
  } else if (type == '1' || type == '2') {
    member.kind = type == '1' ? TarKind::kHardLink : TarKind::kSymbolicLink;
    member.link = std::move(link);
  } else if (is_file) {
    member.kind = TarKind::kFile;
  }
  const bool has_content = type < '1' || type > '6';
  member.size = has_content ? extended.size.value_or(size) : 0;
  member.offset = at_;
  at_ = end_of_content(member.size, member.name);
  last_name_ = member.name.empty() ? "(without a name)" : member.name;
  return member;
}

std::optional<TarMember> TarReader::next() {
  Extended extended;
  for (;;) {
    const char* header = window(at_, kBlock);
    if (header == nullptr) {
      if (last_name_.empty()) {
        const char* start = window(0, std::min(file_size_, kLongestMagic));
        const std::string how = compression_of({start, static_cast<size_t>(buffer_used_)});
        fail(how.empty() ? "not a tar archive, or truncated in its first header"
                         : "not a tar archive" + how);
      }
      fail(fmt::format("truncated after member '{}': the archive's end marker is missing",
                       printable(last_name_)));
    }
    if (is_zero(header)) {
      check_end();
      return std::nullopt;
    }
    if (!has_valid_checksum(header)) {
      if (at_ == 0) fail("not a tar archive" + compression_of({header, kLongestMagic}));
      fail(fmt::format("damaged: no valid header at byte {}, after member '{}'", at_,
                       printable(last_name_)));
    }
    const char type = header[156];
    const bool has_sparse_map = type == 'S' && header[482] != 0;
    const auto stated_size = number_field(header, 124, 12);
    std::string name = extended.name ? *extended.name : header_name(header);
    std::string link = extended.link ? *extended.link : text_field(header, 157, 100);
    if (name.starts_with("./")) name.erase(0, 2);
    if (!stated_size) {
      fail(fmt::format("damaged: member '{}' has an unreadable size", printable(name)));
    }
    at_ += kBlock;
    if (read_extension(type, *stated_size, extended)) {
      at_ = end_of_content(*stated_size, name);
      continue;
    }
    skip_sparse_map(has_sparse_map);
    return read_member(type, std::move(name), *stated_size, extended, std::move(link));
  }
}

}  // namespace gallop::data

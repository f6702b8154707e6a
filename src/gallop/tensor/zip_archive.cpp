#include "gallop/tensor/zip_archive.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <libdeflate.h>

#include "gallop/base/checked.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop {

namespace {

constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxComment = 0xffff;
constexpr uint32_t kSee64 = 0xffffffff;  // The value is in the zip64 record.

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46;
constexpr size_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;

constexpr uint16_t kStoredMethod = 0, kDeflateMethod = 8;
constexpr uint64_t kMaxDeflateRatio = 1032;  // Limit of the format: 258 bytes from two bits.
constexpr uint16_t kEncrypted = 1 << 0, kSizesFollow = 1 << 3;
constexpr uint16_t kStrongEncryption = 1 << 6, kMaskedHeader = 1 << 13;

// A little-endian number at a position that the caller has checked.
template <typename T>
T number(std::string_view bytes, size_t at) {
  T value = 0;
  for (size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(bytes[at + i]));
  }
  return value;
}
uint16_t number16(std::string_view bytes, size_t at) { return number<uint16_t>(bytes, at); }
uint32_t number32(std::string_view bytes, size_t at) { return number<uint32_t>(bytes, at); }
uint64_t number64(std::string_view bytes, size_t at) { return number<uint64_t>(bytes, at); }

// The part of `bytes` of this position and length; empty if it does not lie within.
std::optional<std::string_view> part(std::string_view bytes, uint64_t at, uint64_t length) {
  if (at > bytes.size() || length > bytes.size() - at) return std::nullopt;
  return bytes.substr(at, length);
}

// What is wrong with a name; empty if nothing is.
std::string name_problem(std::string_view name) {
  if (name.empty()) return "has no name";
  if (name.size() > kMaxNameBytes) {
    return fmt::format("has a name of {} bytes, where {} are allowed", name.size(), kMaxNameBytes);
  }
  for (const char letter : name) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f || letter == '\\') {
      return "has a control character or backslash in its name";
    }
  }
  if (name.ends_with('/')) name.remove_suffix(1);
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") {
      return "has a name that is not a relative path";
    }
    begin = end + 1;
  }
  return "";
}

}  // namespace

struct ZipArchive::CentralHeader {
  std::string_view name;
  uint16_t flags = 0, method = 0, disk = 0;
  uint32_t crc32 = 0;
  uint64_t content = 0, stored = 0, offset = 0;  ///< Bytes, and where the local header begins.
  bool has_sizes = false;                        ///< False if its zip64 field is incomplete.
  size_t header_bytes = 0;
};

struct ZipArchive::Extent {
  uint64_t begin = 0, end = 0;
  std::string_view name{};
};

struct ZipArchive::Directory {
  uint64_t offset = 0, bytes = 0, entries = 0;
  uint64_t end = 0;  ///< Where the records after it begin.
};

ZipArchive::ZipArchive(const fs::path& path, Methods methods) : file_(path), methods_(methods) {
  entries_ = read_directory(find_directory());
  is_checked_.resize(entries_.size());
  by_name_.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!by_name_.emplace(entries_[i].name, i).second) {
      fail(fmt::format("has two entries '{}'", printable(entries_[i].name)));
    }
  }
}

void ZipArchive::fail(const std::string& what) const {
  throw DataError(fmt::format("{}: {}", printable(path().string()), what));
}

std::vector<std::string> ZipArchive::names() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) names.push_back(entry.name);
  return names;
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

std::string_view ZipArchive::inflated(const ZipEntry& entry, const std::string& description) {
  const auto [found, is_new] = inflated_.try_emplace(by_name_.at(entry.name));
  std::string& content = found->second;
  if (!is_new) return content;
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor) throw InternalError("no memory for a decompressor");
  content.resize(static_cast<size_t>(entry.bytes));
  size_t used = 0;
  const auto result = libdeflate_deflate_decompress_ex(
      decompressor.get(), file_.bytes().data() + entry.offset, static_cast<size_t>(entry.stored),
      content.data(), content.size(), &used, nullptr);
  if (result != LIBDEFLATE_SUCCESS || std::cmp_not_equal(used, entry.stored)) {
    inflated_.erase(found);
    fail(description + " is damaged: it cannot be decompressed; get the file again");
  }
  return content;
}

std::string_view ZipArchive::bytes(const ZipEntry& entry, std::string_view description) {
  const std::string name = description.empty() ? fmt::format("entry '{}'", printable(entry.name))
                                               : std::string(description);
  const std::string_view content = entry.is_deflated
                                       ? inflated(entry, name)
                                       : file_.bytes().substr(static_cast<size_t>(entry.offset),
                                                              static_cast<size_t>(entry.bytes));
  const size_t index = by_name_.at(entry.name);
  if (is_checked_[index]) return content;
  const uint32_t actual = libdeflate_crc32(0, content.data(), content.size());
  if (actual != entry.crc32) {
    fail(fmt::format("{} is damaged (CRC-32 {:08x} instead of {:08x}); get the file again", name,
                     actual, entry.crc32));
  }
  is_checked_[index] = true;
  return content;
}

// The end record is the last one whose comment ends with the file.
ZipArchive::Directory ZipArchive::find_directory() const {
  const std::string_view file = file_.bytes();
  if (file.size() < kEndBytes) fail("not a zip archive, or truncated");
  size_t at = file.size() - kEndBytes;
  const size_t first = at > kMaxComment ? at - kMaxComment : 0;
  while (number32(file, at) != kEnd || number16(file, at + 20) != file.size() - at - kEndBytes) {
    if (at-- == first) fail("not a zip archive, or truncated: its end record is missing");
  }
  Directory directory{.offset = number32(file, at + 16),
                      .bytes = number32(file, at + 12),
                      .entries = number16(file, at + 10),
                      .end = at};
  if (number16(file, at + 4) != 0 || number16(file, at + 6) != 0 ||
      number16(file, at + 8) != directory.entries) {
    fail("a zip archive of several disks");
  }
  if (at >= kLocatorBytes && number32(file, at - kLocatorBytes) == kLocator64) {
    directory = read_end64(directory);
  }
  const auto end = checked_add(directory.offset, directory.bytes);
  if (!end || *end != directory.end) {
    fail("damaged: its directory does not end where its end record begins");
  }
  return directory;
}

ZipArchive::Directory ZipArchive::read_end64(const Directory& end) const {
  const size_t locator_at = end.end - kLocatorBytes;
  const std::string_view locator = file_.bytes().substr(locator_at, kLocatorBytes);
  const uint64_t at = number64(locator, 8);
  const auto record = part(file_.bytes().substr(0, locator_at), at, kEnd64Bytes);
  if (!record || number32(*record, 0) != kEnd64) fail("damaged: its zip64 end record is missing");
  const Directory directory{.offset = number64(*record, 48),
                            .bytes = number64(*record, 40),
                            .entries = number64(*record, 32),
                            .end = at};
  if (number32(locator, 4) != 0 || number32(locator, 16) != 1 || number32(*record, 16) != 0 ||
      number32(*record, 20) != 0 || number64(*record, 24) != directory.entries) {
    fail("a zip archive of several disks");
  }
  const auto agrees = [](uint64_t value, uint64_t value64, uint64_t largest) {
    return value == value64 || value == largest;
  };
  const auto record_end = checked_add(at + 12, number64(*record, 4));
  if (!record_end || *record_end != locator_at || !agrees(end.offset, directory.offset, kSee64) ||
      !agrees(end.bytes, directory.bytes, kSee64) ||
      !agrees(end.entries, directory.entries, 0xffff)) {
    fail("damaged: its two end records contradict each other");
  }
  return directory;
}

// Replaces the numbers that are kSee64 by those in the zip64 extra field.
bool ZipArchive::read_zip64(std::string_view extra, CentralHeader& header) {
  std::string_view values;
  while (extra.size() >= 4) {
    const auto body = part(extra, 4, number16(extra, 2));
    if (!body) return false;
    if (number16(extra, 0) == 1) values = *body;
    extra.remove_prefix(4 + body->size());
  }
  for (uint64_t* size : {&header.content, &header.stored, &header.offset}) {
    if (*size != kSee64) continue;
    if (values.size() < 8) return false;
    *size = number64(values, 0);
    values.remove_prefix(8);
  }
  return true;
}

std::optional<ZipArchive::CentralHeader> ZipArchive::read_central_header(std::string_view bytes) {
  if (bytes.size() < kCentralBytes || number32(bytes, 0) != kCentralHeader) return std::nullopt;
  const size_t name_bytes = number16(bytes, 28), extra_bytes = number16(bytes, 30);
  const size_t header_bytes = kCentralBytes + name_bytes + extra_bytes + number16(bytes, 32);
  if (header_bytes > bytes.size()) return std::nullopt;
  CentralHeader header{.name = bytes.substr(kCentralBytes, name_bytes),
                       .flags = number16(bytes, 8),
                       .method = number16(bytes, 10),
                       .disk = number16(bytes, 34),
                       .crc32 = number32(bytes, 16),
                       .content = number32(bytes, 24),
                       .stored = number32(bytes, 20),
                       .offset = number32(bytes, 42),
                       .header_bytes = header_bytes};
  header.has_sizes = read_zip64(bytes.substr(kCentralBytes + name_bytes, extra_bytes), header);
  return header;
}

std::vector<ZipEntry> ZipArchive::read_directory(const Directory& directory) const {
  std::string_view rest = file_.bytes().substr(directory.offset, directory.bytes);
  std::vector<Extent> extents;
  std::vector<ZipEntry> entries;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const auto header = read_central_header(rest);
    if (!header) {
      fail(fmt::format("damaged: its directory ends within entry {} of {}", i, directory.entries));
    }
    check_kind(*header);
    ZipEntry entry = entry_of(*header);
    const auto end = checked_add(entry.offset, entry.stored);
    if (!end || std::cmp_greater(*end, directory.offset)) {
      fail(fmt::format("entry '{}' of {} bytes goes beyond the archive's content",
                       printable(entry.name), entry.stored));
    }
    extents.push_back({.begin = header->offset, .end = static_cast<uint64_t>(*end)});
    extents.back().name = header->name;
    rest.remove_prefix(header->header_bytes);
    if (!header->name.ends_with('/')) {
      entries.push_back(std::move(entry));
    } else if (entry.bytes != 0) {
      fail(fmt::format("entry '{}' is a folder with content", printable(entry.name)));
    }
  }
  if (!rest.empty()) fail("damaged: its directory has more bytes than entries");
  check_overlaps(std::move(extents));
  std::sort(entries.begin(), entries.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.offset < b.offset; });
  return entries;
}

void ZipArchive::check_kind(const CentralHeader& header) const {
  const auto reject = [&](const std::string& why) {
    fail(fmt::format("entry '{}' {}", printable(header.name), why));
  };
  if (const std::string wrong = name_problem(header.name); !wrong.empty()) reject(wrong);
  if ((header.flags & (kEncrypted | kStrongEncryption | kMaskedHeader)) != 0) {
    reject("is encrypted");
  }
  const bool is_deflated =
      header.method == kDeflateMethod && methods_ == Methods::kStoredOrDeflated;
  if (header.method != kStoredMethod && !is_deflated) {
    reject(fmt::format("is compressed (method {}); store it without compression (zip -0)",
                       header.method));
  }
  if (!header.has_sizes) reject("has no valid zip64 field");
  if (!is_deflated && header.content != header.stored) {
    reject(fmt::format("is stored, but its sizes {} and {} differ", header.stored, header.content));
  }
  // Memory is allocated for the stated size.
  if (is_deflated && header.content / kMaxDeflateRatio > header.stored) {
    reject(fmt::format("cannot have {} bytes, as it has {} when compressed", header.content,
                       header.stored));
  }
  if (header.disk != 0) fail("a zip archive of several disks");
}

ZipEntry ZipArchive::entry_of(const CentralHeader& header) const {
  const auto bytes = checked_cast<int64_t>(header.content);
  const auto stored = checked_cast<int64_t>(header.stored);
  if (!bytes || !stored) fail(fmt::format("entry '{}' is absurdly large", printable(header.name)));
  return {.name = std::string(header.name),
          .offset = end_of_local_header(header),
          .bytes = *bytes,
          .stored = *stored,
          .is_deflated = header.method == kDeflateMethod,
          .crc32 = header.crc32};
}

void ZipArchive::check_overlaps(std::vector<Extent> extents) const {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) {
      fail(fmt::format("entries '{}' and '{}' overlap", printable(extents[i - 1].name),
                       printable(extents[i].name)));
    }
  }
}

// Checks the header in front of an entry's content, whose sizes may be left to the directory.
int64_t ZipArchive::end_of_local_header(const CentralHeader& entry) const {
  const bool sizes_follow = (entry.flags & kSizesFollow) != 0;
  const auto agrees = [sizes_follow](uint32_t local, uint64_t stated) {
    return local == stated || local == kSee64 || (sizes_follow && local == 0);
  };
  const auto header = part(file_.bytes(), entry.offset, kLocalBytes);
  if (!header) fail(fmt::format("entry '{}' is not within the file", printable(entry.name)));
  const auto name = part(file_.bytes(), entry.offset + kLocalBytes, number16(*header, 26));
  if (!name || number32(*header, 0) != kLocalHeader || *name != entry.name ||
      number16(*header, 6) != entry.flags || number16(*header, 8) != entry.method ||
      !agrees(number32(*header, 14), entry.crc32) || !agrees(number32(*header, 18), entry.stored) ||
      !agrees(number32(*header, 22), entry.content)) {
    fail(fmt::format("damaged: the header of entry '{}' contradicts the archive's directory",
                     printable(entry.name)));
  }
  return static_cast<int64_t>(entry.offset + kLocalBytes + name->size() + number16(*header, 28));
}

}  // namespace gallop

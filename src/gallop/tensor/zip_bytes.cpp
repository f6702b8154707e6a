#include "gallop/tensor/zip_bytes.h"

#include <cstdint>

#include <libdeflate.h>

#include "gallop/base/error.h"

namespace gallop {

namespace {

constexpr size_t kAlignment = 64;
constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint16_t kVersion = 20, kUtf8Names = 0x800;

void put16(std::string& to, uint16_t value) {
  to += static_cast<char>(value & 0xff);
  to += static_cast<char>(value >> 8);
}

void put32(std::string& to, uint32_t value) {
  put16(to, static_cast<uint16_t>(value & 0xffff));
  put16(to, static_cast<uint16_t>(value >> 16));
}

// The fields from the flags to the length of the name, which both headers have.
void put_common(std::string& to, const std::string& name, std::string_view content) {
  put16(to, kUtf8Names);
  put16(to, 0);  // Stored.
  put32(to, 0);  // No time, so that equal contents are equal archives.
  put32(to, libdeflate_crc32(0, content.data(), content.size()));
  put32(to, static_cast<uint32_t>(content.size()));
  put32(to, static_cast<uint32_t>(content.size()));
  put16(to, static_cast<uint16_t>(name.size()));
}

void put_entry(std::string& zip, const std::string& name, std::string_view content) {
  constexpr size_t kFieldHeader = 4;
  put32(zip, kLocalHeader);
  put16(zip, kVersion);
  put_common(zip, name, content);
  const size_t end = zip.size() + sizeof(uint16_t) + name.size() + kFieldHeader;
  const size_t padding = (kAlignment - end % kAlignment) % kAlignment;
  put16(zip, static_cast<uint16_t>(kFieldHeader + padding));
  zip += name;
  put16(zip, 0x4246);  // "FB", the extra field of torch's padding.
  put16(zip, static_cast<uint16_t>(padding));
  zip.append(padding, 'Z');
  zip += content;
}

void put_directory_entry(std::string& directory, const std::string& name, std::string_view content,
                         size_t at) {
  put32(directory, kCentralHeader);
  put16(directory, kVersion);
  put16(directory, kVersion);
  put_common(directory, name, content);
  put32(directory, 0);  // No extra field, no comment.
  put32(directory, 0);  // The first disk, internal attributes.
  put32(directory, 0);  // External attributes.
  put32(directory, static_cast<uint32_t>(at));
  directory += name;
}

}  // namespace

std::string zip_bytes(const std::vector<std::pair<std::string, std::string_view>>& entries) {
  std::string zip, directory;
  if (entries.size() >= UINT16_MAX) {
    throw DataError("an archive of more than 65,534 entries would need the zip64 format");
  }
  for (const auto& [name, content] : entries) {
    const size_t at = zip.size();
    if (name.size() > UINT16_MAX) {
      throw DataError("a name of more than 65,535 bytes does not fit into an archive");
    }
    if (at + content.size() > UINT32_MAX - (size_t{1} << 24)) {
      throw DataError("an archive of more than 4 GiB would need the zip64 format");
    }
    put_entry(zip, name, content);
    put_directory_entry(directory, name, content, at);
  }
  const auto count = static_cast<uint16_t>(entries.size());
  const auto at = static_cast<uint32_t>(zip.size());
  zip += directory;
  put32(zip, kEnd);
  put32(zip, 0);  // This disk is the first.
  put16(zip, count);
  put16(zip, count);
  put32(zip, static_cast<uint32_t>(directory.size()));
  put32(zip, at);
  put16(zip, 0);
  return zip;
}

}  // namespace gallop

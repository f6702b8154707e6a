#include "gallop/data/idx.h"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/checked.h"
#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/data/gzip.h"

namespace gallop::data {

namespace {

constexpr uint8_t kUnsignedBytes = 0x08;

int64_t read_big_endian(const uint8_t* at) {
  return int64_t{at[0]} << 24 | int64_t{at[1]} << 16 | int64_t{at[2]} << 8 | at[3];
}

}  // namespace

IdxArray parse_idx(const Block<uint8_t>& content, int dimensions, const std::string& name) {
  const size_t header = 4 + 4 * static_cast<size_t>(dimensions);
  if (content.size() < header) {
    throw DataError(fmt::format("{}: truncated: {} bytes, where the IDX header alone has {}", name,
                                content.size(), header));
  }
  const uint8_t* at = content.data();
  if (at[0] != 0 || at[1] != 0) {
    throw DataError(
        fmt::format("{}: not an IDX file: begins with {:02x} {:02x} where two zeros are expected",
                    name, at[0], at[1]));
  }
  if (at[2] != kUnsignedBytes || at[3] != dimensions) {
    throw DataError(fmt::format(
        "{}: IDX values of type 0x{:02x} in {} dimensions, where unsigned bytes (0x08) in {} are "
        "expected; is it a different file of the data set?",
        name, at[2], at[3], dimensions));
  }
  IdxArray array;
  for (int i = 0; i < dimensions; ++i)
    array.sizes.push_back(read_big_endian(at + 4 + ptrdiff_t{4} * i));
  const auto count = checked_product(array.sizes);
  const auto expected = count ? checked_add(*count, static_cast<int64_t>(header)) : std::nullopt;
  if (!expected || *expected != static_cast<int64_t>(content.size())) {
    throw DataError(fmt::format(
        "{}: {}: the header says {} values, the file has {}; get the file again", name,
        expected && *expected < static_cast<int64_t>(content.size()) ? "too long" : "truncated",
        fmt::join(array.sizes, " x "), content.size() - header));
  }
  array.values = content.part(header, content.size() - header);
  return array;
}

IdxArray read_idx(const fs::path& path, int dimensions, SharedData* shared) {
  const std::string name = printable(path.string());
  const auto read = [&]() -> Bytes {
    const MappedFile file(path);
    if (looks_like_gzip(file.bytes())) return gunzip(file.bytes(), name);
    Bytes content(file.bytes().size());
    if (content.size() > 0) std::memcpy(content.data(), file.bytes().data(), content.size());
    return content;
  };
  return parse_idx(shared != nullptr ? shared->content(identity_of("idx", {path}), read)
                                     : Block<uint8_t>(read()),
                   dimensions, name);
}

}  // namespace gallop::data

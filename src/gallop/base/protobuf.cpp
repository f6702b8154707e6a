#include "gallop/base/protobuf.h"

#include <bit>
#include <cstring>

#include "gallop/base/error.h"

namespace gallop {

namespace {

// Wire types.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

[[noreturn]] void refuse() { throw DataError("a damaged Protocol Buffers message"); }

static_assert(std::endian::native == std::endian::little);

}  // namespace

void ProtobufWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) message_ += static_cast<char>(value | 0x80);
  message_ += static_cast<char>(value);
}

template <typename Number>
void ProtobufWriter::fixed(Number value) {
  message_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void ProtobufWriter::integer(uint32_t field, uint64_t value) {
  varint(field << 3 | kVarint);
  varint(value);
}

void ProtobufWriter::real(uint32_t field, double value) {
  varint(field << 3 | kFixed64);
  fixed(value);
}

void ProtobufWriter::real32(uint32_t field, float value) {
  varint(field << 3 | kFixed32);
  fixed(value);
}

void ProtobufWriter::bytes(uint32_t field, std::string_view value) {
  varint(field << 3 | kBytes);
  varint(value.size());
  message_ += value;
}

uint64_t ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1).front());
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  refuse();
}

std::string_view ProtobufReader::take(size_t size) {
  if (size > rest_.size()) refuse();
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

bool ProtobufReader::next() {
  if (rest_.empty()) return false;
  const uint64_t key = varint();
  if (key >> 3 == 0 || key >> 32 != 0) refuse();
  field_ = static_cast<uint32_t>(key >> 3);
  integer_ = 0;
  real_ = 0;
  bytes_ = {};
  switch (key & 7) {
    case kVarint: integer_ = varint(); break;
    case kFixed64: std::memcpy(&real_, take(sizeof real_).data(), sizeof real_); break;
    case kBytes: bytes_ = take(varint()); break;
    case kFixed32: {
      float value = 0;
      std::memcpy(&value, take(sizeof value).data(), sizeof value);
      real_ = value;
      break;
    }
    default: refuse();
  }
  return true;
}

}  // namespace gallop

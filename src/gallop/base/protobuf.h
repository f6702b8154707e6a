#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gallop {

/// A serialized Protocol Buffers message.
/// (https://protobuf.dev/programming-guides/encoding), field by field.
class ProtobufWriter {
 public:
  void integer(uint32_t field, uint64_t value);
  void real(uint32_t field, double value);
  void real32(uint32_t field, float value);
  /// Strings, bytes, packed lists and messages.
  void bytes(uint32_t field, std::string_view value);

  const std::string& message() const { return message_; }

 private:
  void varint(uint64_t value);
  template <typename Number>
  void fixed(Number value);

  std::string message_;
};

/// Parses a message, field by field:
///
///     for (ProtobufReader reader(message); reader.next();) { if (reader.field() == 1) ... }
///
/// Accessors of other types than the field's return zero or nothing.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  /// Advances to the next field; false at the end. Throws DataError if the message is damaged.
  bool next();
  uint32_t field() const { return field_; }
  uint64_t integer() const { return integer_; }
  double real() const { return real_; }  ///< 64-bit or 32-bit.
  std::string_view bytes() const { return bytes_; }

 private:
  uint64_t varint();
  std::string_view take(size_t size);

  std::string_view rest_;
  uint32_t field_ = 0;
  uint64_t integer_ = 0;
  double real_ = 0;
  std::string_view bytes_;
};

}  // namespace gallop

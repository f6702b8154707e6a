#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

// Values as bytes, for other processes of the same program on machines of the same kind.
namespace gallop::parallel {

template <typename T>
struct ValueBytes {
  static_assert(std::is_arithmetic_v<T>, "text, numbers, optional values and lists of text");
  static std::string write(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }
  static T read(const std::string& bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
};

template <>
struct ValueBytes<std::string> {
  static std::string write(const std::string& value) { return value; }
  static std::string read(const std::string& bytes) { return bytes; }
};

template <typename T>
struct ValueBytes<std::optional<T>> {
  static std::string write(const std::optional<T>& value) {
    return value ? "+" + ValueBytes<T>::write(*value) : std::string();
  }
  static std::optional<T> read(const std::string& bytes) {
    if (bytes.empty()) return std::nullopt;
    return ValueBytes<T>::read(bytes.substr(1));
  }
};

template <>
struct ValueBytes<std::vector<std::string>> {
  static std::string write(const std::vector<std::string>& value) {
    std::string bytes;
    for (const std::string& one : value) bytes += ValueBytes<uint64_t>::write(one.size()) + one;
    return bytes;
  }
  static std::vector<std::string> read(const std::string& bytes) {
    std::vector<std::string> value;
    for (size_t at = 0; at < bytes.size(); at += value.back().size()) {
      const auto size = ValueBytes<uint64_t>::read(bytes.substr(at, sizeof(uint64_t)));
      at += sizeof(uint64_t);
      value.push_back(bytes.substr(at, size));
    }
    return value;
  }
};

}  // namespace gallop::parallel

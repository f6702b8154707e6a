#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gallop/base/error.h"

namespace gallop::train {

/// Appends values to bytes that another process of the same program reads in the same order.
class BytesWriter {
 public:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  void put(const std::string& text) { put(std::vector<char>(text.begin(), text.end())); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what BytesWriter has written. Throws InternalError if there are too few bytes.
class BytesReader {
 public:
  explicit BytesReader(const std::string& bytes) : bytes_(bytes) {}

  template <typename T>
  void get(T& value) {
    std::memcpy(static_cast<void*>(&value), take(1, sizeof(T)), sizeof(T));
  }
  template <typename T>
  void get(std::vector<T>& values) {
    size_t size = 0;
    get(size);
    const char* const from = take(size, sizeof(T));
    values.resize(size);
    if (size > 0) std::memcpy(static_cast<void*>(values.data()), from, size * sizeof(T));
  }
  void get(std::string& text) {
    std::vector<char> letters;
    get(letters);
    text.assign(letters.begin(), letters.end());
  }

 private:
  const char* take(size_t count, size_t size) {
    if (count > (bytes_.size() - at_) / size) throw InternalError("a metric's state is cut off");
    const char* const from = bytes_.data() + at_;
    at_ += count * size;
    return from;
  }

  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace gallop::train

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace gallop::data {

/// A memory block for files of gigabytes that, unlike a vector, is not zero-initialized.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(size_t size)
      : data_(std::make_unique_for_overwrite<uint8_t[]>(size)), size_(size) {}

  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  size_t size() const { return size_; }
  /// Truncates the block to `size` bytes, at most the current size.
  void shrink(size_t size) { size_ = size; }
  std::unique_ptr<uint8_t[]> release() && { return std::move(data_); }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_ = 0;
};

/// Immutable values, in memory of this process or shared memory. A copy refers to the same values.
template <typename T>
class Block {
 public:
  Block() = default;
  Block(std::shared_ptr<const T> data, size_t size) : data_(std::move(data)), size_(size) {}
  Block(std::vector<T> values)  // NOLINT(google-explicit-constructor): the same values
      : size_(values.size()) {
    const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    data_ = std::shared_ptr<const T>(kept, kept->data());
  }
  Block(Bytes bytes)  // NOLINT(google-explicit-constructor): the same values
      requires std::is_same_v<T, uint8_t> : size_(bytes.size()) {
    const std::shared_ptr<uint8_t[]> kept = std::move(bytes).release();
    data_ = std::shared_ptr<const T>(kept, kept.get());
  }

  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  const T& operator[](size_t at) const { return data()[at]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  friend bool operator==(const Block& one, const Block& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end());
  }
  /// Returns `size` values starting at `first`; the range must be valid.
  Block part(size_t first, size_t size) const {
    return {std::shared_ptr<const T>(data_, data_.get() + first), size};
  }
  /// Reinterprets memory from `first_byte`, suitably aligned, as `size` values of another type.
  template <typename Other>
  Block<Other> part_as(size_t first_byte, size_t size) const {
    const auto* begin = reinterpret_cast<const uint8_t*>(data_.get()) + first_byte;
    return {std::shared_ptr<const Other>(data_, reinterpret_cast<const Other*>(begin)), size};
  }

 private:
  std::shared_ptr<const T> data_;
  size_t size_ = 0;
};

}  // namespace gallop::data

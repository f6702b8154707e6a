#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gallop::data {

/// A block of memory that, unlike a vector, is not zeroed first: files of gigabytes go into it.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(size_t size)
      : data_(std::make_unique_for_overwrite<uint8_t[]>(size)), size_(size) {}

  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  size_t size() const { return size_; }
  /// Forgets the end; `size` at most the present one.
  void shrink(size_t size) { size_ = size; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_ = 0;
};

}  // namespace gallop::data

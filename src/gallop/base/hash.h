#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gallop {

/// XXH3-128 of one block of memory, as 32 hexadecimal digits.
std::string xxh3_128(std::string_view bytes);

/// XXH3-64 of one block of memory.
uint64_t xxh3_64(std::string_view bytes);

/// XXH3-128 of data that arrive in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  void update(const void* data, size_t bytes);
  /// Hash of everything so far, as 32 hexadecimal digits.
  std::string digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gallop

#include "gallop/base/crc32c.h"

#include <array>

namespace gallop {

namespace {

constexpr std::array<uint32_t, 256> kTable = [] {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // Its bits in reverse.
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t rest = ~uint32_t{0};
  for (const char byte : bytes) {
    rest = (rest >> 8) ^ kTable[(rest ^ static_cast<unsigned char>(byte)) & 0xFF];
  }
  return ~rest;
}

}  // namespace gallop

#include "gallop/base/base64.h"

#include <cstddef>
#include <cstdint>

namespace gallop {

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr size_t kBytes = 3, kGroup = 4;  // Three bytes become four characters.
  std::string text;
  text.reserve((bytes.size() + kBytes - 1) / kBytes * kGroup);
  for (size_t at = 0; at < bytes.size(); at += kBytes) {
    const std::string_view group = bytes.substr(at, kBytes);
    uint32_t bits = 0;
    for (size_t i = 0; i < kBytes; ++i) {
      bits = bits << 8U | (i < group.size() ? static_cast<uint8_t>(group[i]) : 0U);
    }
    for (size_t i = 0; i < kGroup; ++i) {
      const uint32_t digit = bits >> (6U * (kGroup - 1 - i)) & 63U;
      text += i <= group.size() ? kDigits[digit] : '=';
    }
  }
  return text;
}

}  // namespace gallop

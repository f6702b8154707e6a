#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace gallop::data {

/// Appends a number in native byte order.
template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Appends the length of a text (32 bits), then the text.
inline void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out += text;
}

/// Reads packed values from the front of a text. After a missing one, all reads are zero or empty.
class Taker {
 public:
  explicit Taker(std::string_view rest) : rest_(rest) {}

  template <typename T>
  T take() {
    T value{};
    const std::string_view bytes = take_bytes(sizeof value);
    if (good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view take_bytes(size_t count) {
    if (count > rest_.size()) good_ = false;
    if (!good_) return {};
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  std::string_view take_text() { return take_bytes(take<uint32_t>()); }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace gallop::data

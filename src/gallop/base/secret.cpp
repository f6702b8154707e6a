#include "gallop/base/secret.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop {

namespace {

constexpr size_t kBytes = 32;

}  // namespace

std::string new_secret() {
  std::array<unsigned char, kBytes> bytes{};
  // Requests of at most 256 bytes are not interrupted.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw DeviceError(fmt::format("the system has no random numbers: {}",
                                  std::generic_category().message(errno)));
  }
  std::string secret;
  for (const unsigned char byte : bytes) secret += fmt::format("{:02x}", byte);
  return secret;
}

bool is_same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace gallop

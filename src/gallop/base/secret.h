#pragma once

#include <string>
#include <string_view>

namespace gallop {

/// 32 random bytes of the system as 64 hexadecimal digits. Throws DeviceError on failure.
std::string new_secret();

/// Constant-time comparison.
bool is_same_secret(std::string_view a, std::string_view b);

}  // namespace gallop

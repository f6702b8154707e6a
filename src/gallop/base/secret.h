#pragma once

#include <string>
#include <string_view>

namespace gallop {

/// 32 random bytes of the system as 64 hexadecimal digits. Throws DeviceError where it has none.
std::string new_secret();

/// Whether texts are equal, in a time that does not tell where they differ.
bool is_same_secret(std::string_view a, std::string_view b);

}  // namespace gallop

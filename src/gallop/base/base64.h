#pragma once

#include <string>
#include <string_view>

namespace gallop {

/// Bytes in Base64 with padding (RFC 4648), as for the data URL of an image.
std::string to_base64(std::string_view bytes);

}  // namespace gallop

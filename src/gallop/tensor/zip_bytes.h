#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gallop {

/// The bytes of a zip archive of these names and contents, stored without compression, at multiples
/// of 64 bytes as torch.save() aligns them; ZipArchive reads it. Throws DataError beyond 4 GiB.
std::string zip_bytes(const std::vector<std::pair<std::string, std::string_view>>& entries);

}  // namespace gallop

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gallop {

/// The header entry of one tensor in a safetensors file.
struct SafetensorsEntry {
  std::string name;
  std::string dtype{};  ///< "F32", "BF16", "I64", ...
  std::vector<int64_t> shape{};
  int64_t begin = 0;  ///< Offset of its data from the file's start.
  int64_t bytes = 0;
};

/// The header of a safetensors file: 8 bytes of length, JSON, then the data of all tensors.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< Ordered by offset.
  std::map<std::string, std::string> metadata;
};

/// Bits per element of a safetensors type; 0 for an unknown type.
int64_t safetensors_bits(std::string_view dtype);

/// Parses the header of a complete file and validates it: length within 100 MB and the file, JSON
/// in UTF-8 without duplicate or unknown keys, contiguous tensors without gap, overlap or tail,
/// each with the size of its shape and type. Additionally rejects control characters in names and
/// more than 64 dimensions. Throws DataError, prefixed with `file_name`.
SafetensorsHeader parse_safetensors_header(std::string_view file, const std::string& file_name);

/// The bytes before the data: length and JSON, padded with spaces to a multiple of 8. Sets `begin`
/// and `bytes` of each entry, in the given order. Throws UsageError for names that the format or
/// parse_safetensors_header() rejects.
std::string format_safetensors_header(SafetensorsHeader& header);

}  // namespace gallop

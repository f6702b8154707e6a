#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gallop {

/// One tensor of a safetensors file, as its header describes it.
struct SafetensorsEntry {
  std::string name;
  std::string dtype{};  ///< "F32", "BF16", "I64", ...
  std::vector<int64_t> shape{};
  int64_t begin = 0;  ///< Of its bytes, counted from the file's start.
  int64_t bytes = 0;
};

/// The header of a safetensors file: 8 bytes of length, JSON, then the data of all tensors.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< In the order of their bytes.
  std::map<std::string, std::string> metadata;
};

/// Bits of one number of a safetensors type; 0 where there is no such type.
int64_t safetensors_bits(std::string_view dtype);

/// Reads the header of a whole file and checks every rule of the format: length within 100 MB and
/// the file, JSON in UTF-8 without duplicate or unknown keys, tensors that follow one another
/// without hole, overlap or tail, each as long as its shape and type say. Beyond the format it
/// refuses control characters in names and more than 64 dimensions. Throws DataError, which begins
/// with `file_name`.
SafetensorsHeader parse_safetensors_header(std::string_view file, const std::string& file_name);

/// The bytes that go before the data: length and JSON, padded with spaces to a multiple of 8. Fills
/// in `begin` and `bytes` of each entry, in the given order. Throws UsageError for names that the
/// format or parse_safetensors_header() refuses.
std::string format_safetensors_header(SafetensorsHeader& header);

}  // namespace gallop

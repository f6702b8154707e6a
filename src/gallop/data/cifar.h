#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gallop/data/bytes.h"

namespace gallop::data {

inline constexpr int kCifarSide = 32;
inline constexpr size_t kCifarPixels = size_t{3} * kCifarSide * kCifarSide;

/// Checks the length of a CIFAR file in its binary version and returns its number of records: each
/// is `label_bytes` labels and 3072 pixels. Throws DataError that begins with `name`.
size_t count_cifar_records(std::string_view content, size_t label_bytes, const std::string& name);

/// Unpacks a checked file: writes one image after the other in the order height, width, channels
/// (the file has planes), and the label at `label_at` of each record.
void unpack_cifar(std::string_view content, size_t label_bytes, size_t label_at, uint8_t* pixels,
                  int32_t* labels);

}  // namespace gallop::data

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gallop/data/bytes.h"

namespace gallop::data {

inline constexpr int kCifarSide = 32;
inline constexpr size_t kCifarPixels = size_t{3} * kCifarSide * kCifarSide;

/// Validates the length of a CIFAR file (binary version) and returns its number of records, each of
/// `label_bytes` labels and 3072 pixels. Throws DataError that begins with `name`.
size_t count_cifar_records(std::string_view content, size_t label_bytes, const std::string& name);

/// Unpacks a validated file. Writes the images in height, width, channels order (the file stores
/// channel planes), and the label at byte `label_at` of each record.
void unpack_cifar(std::string_view content, size_t label_bytes, size_t label_at, uint8_t* pixels,
                  int32_t* labels);

}  // namespace gallop::data

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/bytes.h"

namespace gallop::data {

/// An array of bytes from an IDX file, the format of MNIST (yann.lecun.com/exdb/mnist): magic
/// number 00 00 08 D, D sizes as big-endian 32-bit numbers, then the values.
struct IdxArray {
  std::vector<int64_t> sizes;
  Bytes content;      ///< The whole file.
  size_t offset = 0;  ///< Of the first value.

  const uint8_t* values() const { return content.data() + offset; }
};

/// Checks every size against the content. Throws DataError that begins with `name` where the
/// content is no IDX array of unsigned bytes with `dimensions` dimensions, or is too short or too
/// long.
IdxArray parse_idx(Bytes content, int dimensions, const std::string& name);

/// The same from a file, plain or gzip, whatever its name.
IdxArray read_idx(const fs::path& path, int dimensions);

}  // namespace gallop::data

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/shared_data.h"

namespace gallop::data {

/// An array of bytes from an IDX file, the format of MNIST (yann.lecun.com/exdb/mnist): magic
/// number 00 00 08 D, D sizes as big-endian 32-bit integers, then the values.
struct IdxArray {
  std::vector<int64_t> sizes;
  Block<uint8_t> values;
};

/// Parses an IDX array and checks its sizes against the content. Throws DataError that begins with
/// `name` if the content is not an array of unsigned bytes with `dimensions` dimensions, or is too
/// short or too long.
IdxArray parse_idx(const Block<uint8_t>& content, int dimensions, const std::string& name);

/// Like parse_idx(), from a plain or gzip file of any name. `shared` may be null.
IdxArray read_idx(const fs::path& path, int dimensions, SharedData* shared = nullptr);

}  // namespace gallop::data

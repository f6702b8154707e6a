#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/ScalarType.h>

namespace gallop::data {

/// An array of NumPy's format .npy in memory.
struct NpyArray {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> sizes;  ///< Row-major.
  std::string_view values;     ///< Little-endian, not aligned.

  /// The size of a row, that is, of one index of the first dimension, in bytes.
  size_t row_bytes() const;
  /// The sizes of a row.
  std::vector<int64_t> row_sizes() const { return {sizes.begin() + 1, sizes.end()}; }
};

/// Parses an array of any size with numbers or truth values (numpy.lib.format, versions 1 to 3);
/// the result points into `file`. Throws DataError, without the file's name, for other types, big
/// endian and Fortran order, and if the file is damaged.
NpyArray parse_npy(std::string_view file);

}  // namespace gallop::data

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gallop/data/bytes.h"

namespace gallop::data {

/// Whether the bytes begin with the gzip magic number (RFC 1952).
bool looks_like_gzip(std::string_view bytes);

/// Compresses to a gzip file of one member, without name and time. Throws InternalError if memory
/// runs out.
std::string gzip(std::string_view bytes);

/// Decompresses a whole gzip file, including concatenated members; trailing zeros are padding.
/// Throws DataError that begins with `name` if the file is truncated, corrupt, or longer than
/// `max_bytes` when decompressed.
Bytes gunzip(std::string_view compressed, const std::string& name,
             int64_t max_bytes = int64_t{1} << 32);

}  // namespace gallop::data

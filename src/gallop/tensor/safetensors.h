#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "gallop/base/file.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop {

/// The content of a safetensors file.
struct Safetensors {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};

/// Size and checksum of a written file.
struct WrittenFile {
  int64_t bytes = 0;
  std::string xxh3_128;  ///< 32 hexadecimal digits.
};

/// Maps a file and returns its tensors, ordered by offset, as contiguous read-only CPU tensors:
/// views into the mapping, which they keep alive. Tensors whose data are not aligned to their type
/// are copied. Throws DataError for a file that violates the format or has a type that LibTorch
/// lacks; nothing proportional to the file's size is allocated before.
Safetensors read_safetensors(const fs::path& path);

/// As above, for a mapped file.
Safetensors read_safetensors(const std::shared_ptr<const MappedFile>& file);

/// Writes a new file and syncs it. Tensors of any device and memory format are stored contiguously,
/// ordered by descending alignment and then by name. Throws DeviceError if the file cannot be
/// written (a partial file may remain), UsageError for unsupported tensors.
WrittenFile write_safetensors(const fs::path& path, const NamedTensors& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace gallop

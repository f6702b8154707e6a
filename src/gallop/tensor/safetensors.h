#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "gallop/base/file.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop {

/// What a safetensors file holds.
struct Safetensors {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};

/// Size and checksum of a file that was written.
struct WrittenFile {
  int64_t bytes = 0;
  std::string xxh3_128;  ///< 32 hexadecimal digits.
};

/// Maps a file and returns its tensors, in the order of their bytes, as contiguous CPU tensors that
/// must not be written to: they are views into the mapping and keep it alive. Those whose bytes are
/// not aligned to their type are copies. Throws DataError for a file that breaks any rule of the
/// format or holds a type that LibTorch lacks; nothing of the file's size is allocated before.
Safetensors read_safetensors(const fs::path& path);

/// The same for a file that is mapped already.
Safetensors read_safetensors(const std::shared_ptr<const MappedFile>& file);

/// Writes a new file and makes it durable. Tensors of any device and memory layout are stored
/// contiguously, ordered by descending alignment and then by name. Throws DeviceError where the
/// file cannot be written (a part of it may remain), UsageError for what the format cannot hold.
WrittenFile write_safetensors(const fs::path& path, const NamedTensors& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace gallop

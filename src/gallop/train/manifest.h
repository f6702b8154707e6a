#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gallop/tensor/safetensors.h"

namespace gallop::train {

/// The contents of a checkpoint's manifest.json: the size and checksum of every other file in its
/// folder.
struct Manifest {
  int64_t sequence = 0;  ///< Counts the checkpoints of a run in the order of their publication.
  int64_t step = 0;
  std::map<std::string, WrittenFile> files;
};

/// The text of the file, which ends with its own checksum.
std::string render_manifest(const Manifest& manifest);

/// Reads manifest.json. Throws DataError if it is missing or a single bit of it is wrong.
Manifest read_manifest(const fs::path& path);

}  // namespace gallop::train

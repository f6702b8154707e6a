#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/tensor/safetensors.h"
#include "gallop/train/manifest.h"

namespace gallop::train {

/// Files in a checkpoint's folder, by name.
using WrittenFiles = std::map<std::string, WrittenFile>;

/// The file names of one kind: "model.safetensors", or "model-00001-of-00003.safetensors" and so on
/// if tensors are divided into slices.
std::vector<std::string> slice_names(const std::string& kind, int slices);

/// The bytes of the tensors, without names and headers.
int64_t bytes_of(const NamedTensors& tensors);

/// Slice `slice`, from 0: consecutive whole tensors, so that slices are of about equal size. Each
/// tensor belongs to one slice.
NamedTensors slice_of(const NamedTensors& tensors, int slice, int slices);

/// The number of slices, if the files are exactly those of all slices and "trainer.json"; empty if
/// some are missing or unknown.
std::optional<int> count_slices(const WrittenFiles& files);

/// Writes a note with sizes and checksums beside a slice, for the process that publishes the
/// checkpoint.
void write_slice_note(const fs::path& folder, int slice, int slices, const WrittenFiles& files);
/// Reads and removes the notes of all slices, and returns their files; nothing if one does not
/// exist yet. Throws DataError if a note is damaged.
std::optional<WrittenFiles> take_slice_notes(const fs::path& folder, int slices);

/// Maps a file of a checkpoint. Throws DataError if its length is not that of the manifest.
std::shared_ptr<const MappedFile> open_whole(const fs::path& folder, const Manifest& manifest,
                                             const std::string& name);
/// As open_whole(), and verifies the checksum: throws DataError if the file is damaged.
std::shared_ptr<const MappedFile> open_verified(const fs::path& folder, const Manifest& manifest,
                                                const std::string& name);

/// The tensors of these files, views into mapped files like those of read_safetensors(). Throws
/// DataError that names a damaged file; checksums that were verified before are not computed.
NamedTensors read_slices(const fs::path& folder, const std::vector<std::string>& names,
                         const Manifest& manifest, bool are_verified);

}  // namespace gallop::train

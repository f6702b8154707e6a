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

/// Files of a checkpoint's folder.
using WrittenFiles = std::map<std::string, WrittenFile>;

/// The names of the files of one kind: "model.safetensors", or "model-00001-of-00003.safetensors"
/// and so on where tensors are cut into slices.
std::vector<std::string> slice_names(const std::string& kind, int slices);

/// What the tensors take, without names and headers.
int64_t bytes_of(const NamedTensors& tensors);

/// Slice number `slice`, from 0: whole tensors that lie side by side, so that all slices have about
/// as many bytes as tensors allow. Each tensor is in one of them.
NamedTensors slice_of(const NamedTensors& tensors, int slice, int slices);

/// The number of slices whose files these are, and no others but "trainer.json"; empty where some
/// are missing or not known.
std::optional<int> count_slices(const WrittenFiles& files);

/// The note beside a slice that says how it was written, for who publishes the checkpoint.
void write_slice_note(const fs::path& folder, int slice, int slices, const WrittenFiles& files);
/// All files of all slices, and their notes are gone; nothing where one is not there yet. Throws
/// DataError where a note is damaged.
std::optional<WrittenFiles> take_slice_notes(const fs::path& folder, int slices);

/// Maps a file of a checkpoint; throws DataError where it has another length than was written.
std::shared_ptr<const MappedFile> open_whole(const fs::path& folder, const Manifest& manifest,
                                             const std::string& name);
/// The same, and reads all of it: throws DataError where it is damaged.
std::shared_ptr<const MappedFile> open_verified(const fs::path& folder, const Manifest& manifest,
                                                const std::string& name);

/// The tensors of these files: views into mapped files, like read_safetensors(). Throws DataError
/// that names the damaged one; checksums are not looked at where they were found right before.
NamedTensors read_slices(const fs::path& folder, const std::vector<std::string>& names,
                         const Manifest& manifest, bool are_verified);

}  // namespace gallop::train

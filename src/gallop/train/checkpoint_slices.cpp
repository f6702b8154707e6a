#include "gallop/train/checkpoint_slices.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"

namespace gallop::train {

namespace {

constexpr const char* kKinds[] = {"model", "state"};

fs::path note_of(const fs::path& folder, int slice, int slices) {
  return folder / fmt::format("slice-{:05}-of-{:05}.json", slice + 1, slices);
}

}  // namespace

int64_t bytes_of(const NamedTensors& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

std::vector<std::string> slice_names(const std::string& kind, int slices) {
  if (slices == 1) return {kind + ".safetensors"};
  std::vector<std::string> names;
  for (int slice = 0; slice < slices; ++slice) {
    names.push_back(fmt::format("{}-{:05}-of-{:05}.safetensors", kind, slice + 1, slices));
  }
  return names;
}

NamedTensors slice_of(const NamedTensors& tensors, int slice, int slices) {
  const int64_t all = std::max<int64_t>(1, bytes_of(tensors));
  NamedTensors chosen;
  int64_t before = 0;
  for (const NamedTensor& one : tensors) {
    // Assigned by its middle; fp64 cannot overflow for any number of bytes.
    const double middle =
        static_cast<double>(before) + static_cast<double>(one.tensor.nbytes()) / 2;
    const auto place = static_cast<int>(middle / static_cast<double>(all) * slices);
    if (std::min(place, slices - 1) == slice) chosen.push_back(one);
    before += static_cast<int64_t>(one.tensor.nbytes());
  }
  return chosen;
}

std::optional<int> count_slices(const WrittenFiles& files) {
  const auto slices = static_cast<int>(files.size() / std::size(kKinds));
  if (slices < 1 || files.size() != std::size(kKinds) * static_cast<size_t>(slices) + 1) return {};
  for (const char* kind : kKinds) {
    for (const std::string& name : slice_names(kind, slices)) {
      if (!files.contains(name)) return {};
    }
  }
  return files.contains("trainer.json") ? std::optional(slices) : std::nullopt;
}

void write_slice_note(const fs::path& folder, int slice, int slices, const WrittenFiles& files) {
  write_file_atomically(note_of(folder, slice, slices), render_manifest({.files = files}));
}

std::optional<WrittenFiles> take_slice_notes(const fs::path& folder, int slices) {
  std::vector<fs::path> notes;
  for (int slice = 0; slice < slices; ++slice) {
    notes.push_back(note_of(folder, slice, slices));
    std::error_code error;
    if (!fs::exists(notes.back(), error)) return {};
  }
  WrittenFiles files;
  for (const fs::path& note : notes) {
    files.merge(read_manifest(note).files);
    fs::remove(note);
  }
  return files;
}

NamedTensors read_slices(const fs::path& folder, const std::vector<std::string>& names,
                         const Manifest& manifest, bool are_verified) {
  const auto open = are_verified ? open_whole : open_verified;
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (const std::string& name : names) files.push_back(open(folder, manifest, name));
  NamedTensors all;
  for (const auto& file : files) {
    for (NamedTensor& one : read_safetensors(file).tensors) all.push_back(std::move(one));
  }
  return all;
}

std::shared_ptr<const MappedFile> open_whole(const fs::path& folder, const Manifest& manifest,
                                             const std::string& name) {
  const WrittenFile& expected = manifest.files.at(name);
  auto file = std::make_shared<const MappedFile>(folder / name);
  const auto bytes = static_cast<int64_t>(file->bytes().size());
  if (bytes == expected.bytes) return file;
  throw DataError(fmt::format("{}: damaged: {} bytes where {} were written",
                              printable(file->path().string()), bytes, expected.bytes));
}

std::shared_ptr<const MappedFile> open_verified(const fs::path& folder, const Manifest& manifest,
                                                const std::string& name) {
  auto file = open_whole(folder, manifest, name);
  if (xxh3_128(file->bytes()) == manifest.files.at(name).xxh3_128) return file;
  throw DataError(
      fmt::format("{}: damaged: its checksum is wrong", printable(file->path().string())));
}

}  // namespace gallop::train

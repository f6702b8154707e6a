#include "gallop/tensor/safetensors.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/tensor/safetensors_header.h"
#include "gallop/tensor/safetensors_types.h"
#include "gallop/tensor/safetensors_writer.h"

namespace gallop {

namespace {

// The alignment of a type's elements: that of one component for complex numbers.
size_t alignment_of(c10::ScalarType type) {
  return type == c10::ScalarType::ComplexFloat ? 4 : c10::elementSize(type);
}

at::Tensor tensor_of(const SafetensorsEntry& entry, const std::shared_ptr<const MappedFile>& file) {
  const auto* pair =
      std::find_if(std::begin(kSafetensorsTypes), std::end(kSafetensorsTypes),
                   [&](const SafetensorsType& each) { return entry.dtype == each.name; });
  if (pair == std::end(kSafetensorsTypes)) {
    throw DataError(fmt::format("{}: tensor '{}' has the unsupported type {}",
                                printable(file->path().string()), printable(entry.name),
                                entry.dtype));
  }
  const auto options = at::TensorOptions(pair->type);
  if (entry.bytes == 0) return at::empty(entry.shape, options);
  const char* data = file->bytes().data() + entry.begin;
  if (pair->type == c10::ScalarType::Bool) {
    // A file of another program may contain bytes other than 0 and 1, which are not valid bools.
    return at::from_blob(const_cast<char*>(data), entry.shape, at::TensorOptions(c10::kByte)).ne(0);
  }
  if (reinterpret_cast<uintptr_t>(data) % alignment_of(pair->type) != 0) {
    at::Tensor copy = at::empty(entry.shape, options);
    std::memcpy(copy.mutable_data_ptr(), data, static_cast<size_t>(entry.bytes));
    return copy;
  }
  return at::from_blob(
      const_cast<char*>(data), entry.shape, [file](void*) {}, options);
}

}  // namespace

Safetensors read_safetensors(const fs::path& path) {
  return read_safetensors(std::make_shared<const MappedFile>(path));
}

Safetensors read_safetensors(const std::shared_ptr<const MappedFile>& file) {
  SafetensorsHeader header = parse_safetensors_header(file->bytes(), file->path().string());
  Safetensors content{.tensors = {}, .metadata = std::move(header.metadata)};
  content.tensors.reserve(header.entries.size());
  for (SafetensorsEntry& entry : header.entries) {
    at::Tensor tensor = tensor_of(entry, file);
    content.tensors.push_back({std::move(entry.name), std::move(tensor)});
  }
  return content;
}

WrittenFile write_safetensors(const fs::path& path, const NamedTensors& tensors,
                              const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer(path, tensors, metadata);
  for (const size_t i : safetensors_order(tensors)) writer.append(tensors[i].tensor);
  return writer.finish();
}

}  // namespace gallop

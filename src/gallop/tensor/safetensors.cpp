#include "gallop/tensor/safetensors.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/tensor/safetensors_header.h"

namespace gallop {

namespace {

struct TypePair {
  const char* name;
  c10::ScalarType type;
};

constexpr TypePair kTypes[] = {
    {"BOOL", c10::ScalarType::Bool},
    {"U8", c10::ScalarType::Byte},
    {"I8", c10::ScalarType::Char},
    {"F8_E5M2", c10::ScalarType::Float8_e5m2},
    {"F8_E4M3", c10::ScalarType::Float8_e4m3fn},
    {"F8_E8M0", c10::ScalarType::Float8_e8m0fnu},
    {"F8_E5M2FNUZ", c10::ScalarType::Float8_e5m2fnuz},
    {"F8_E4M3FNUZ", c10::ScalarType::Float8_e4m3fnuz},
    {"I16", c10::ScalarType::Short},
    {"U16", c10::ScalarType::UInt16},
    {"F16", c10::ScalarType::Half},
    {"BF16", c10::ScalarType::BFloat16},
    {"I32", c10::ScalarType::Int},
    {"U32", c10::ScalarType::UInt32},
    {"F32", c10::ScalarType::Float},
    {"C64", c10::ScalarType::ComplexFloat},
    {"F64", c10::ScalarType::Double},
    {"I64", c10::ScalarType::Long},
    {"U64", c10::ScalarType::UInt64},
};

const char* safetensors_name(c10::ScalarType type, const std::string& tensor) {
  for (const TypePair& pair : kTypes) {
    if (pair.type == type) return pair.name;
  }
  throw UsageError(fmt::format("a safetensors file cannot store '{}' of type {}", printable(tensor),
                               c10::toString(type)));
}

// The alignment of a type's elements: that of one component for complex numbers.
size_t alignment_of(c10::ScalarType type) {
  return type == c10::ScalarType::ComplexFloat ? 4 : c10::elementSize(type);
}

at::Tensor tensor_of(const SafetensorsEntry& entry, const std::shared_ptr<const MappedFile>& file) {
  const auto* pair = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const TypePair& each) { return entry.dtype == each.name; });
  if (pair == std::end(kTypes)) {
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

// Writes and hashes in pieces that stay in the cache.
class HashingWriter {
 public:
  explicit HashingWriter(const fs::path& path) : writer_(path) {}

  void write(const void* data, size_t bytes) {
    constexpr size_t kPiece = size_t{1} << 20;
    const auto* at = static_cast<const char*>(data);
    for (size_t done = 0; done < bytes;) {
      const size_t piece = std::min(kPiece, bytes - done);
      hasher_.update(at + done, piece);
      writer_.write(at + done, piece);
      done += piece;
    }
    bytes_ += static_cast<int64_t>(bytes);
  }

  WrittenFile finish() {
    writer_.finish();
    return {.bytes = bytes_, .xxh3_128 = hasher_.digest()};
  }

 private:
  FileWriter writer_;
  Hasher hasher_;
  int64_t bytes_ = 0;
};

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
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& item : tensors) {
    if (!item.tensor.defined()) {
      throw InternalError(fmt::format("tensor '{}' is not defined", printable(item.name)));
    }
    order.push_back(&item);
  }
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const size_t of_a = a->tensor.element_size();
    const size_t of_b = b->tensor.element_size();
    return of_a != of_b ? of_a > of_b : a->name < b->name;
  });
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  for (const NamedTensor* item : order) {
    header.entries.push_back({.name = item->name,
                              .dtype = safetensors_name(item->tensor.scalar_type(), item->name),
                              .shape = item->tensor.sizes().vec()});
  }
  const std::string head = format_safetensors_header(header);
  HashingWriter writer(path);
  writer.write(head.data(), head.size());
  for (const NamedTensor* item : order) {
    const at::Tensor plain = item->tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
    writer.write(plain.const_data_ptr(), plain.nbytes());
  }
  return writer.finish();
}

}  // namespace gallop

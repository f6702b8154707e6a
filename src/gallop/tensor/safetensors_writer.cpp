#include "gallop/tensor/safetensors_writer.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/tensor/safetensors_header.h"
#include "gallop/tensor/safetensors_types.h"

namespace gallop {

namespace {

const char* safetensors_name(c10::ScalarType type, const std::string& tensor) {
  for (const SafetensorsType& pair : kSafetensorsTypes) {
    if (pair.type == type) return pair.name;
  }
  throw UsageError(fmt::format("a safetensors file cannot store '{}' of type {}", printable(tensor),
                               c10::toString(type)));
}

}  // namespace

std::vector<size_t> safetensors_order(const NamedTensors& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const size_t of_a = tensors[a].tensor.element_size();
    const size_t of_b = tensors[b].tensor.element_size();
    return of_a != of_b ? of_a > of_b : tensors[a].name < tensors[b].name;
  });
  return order;
}

// Writes and hashes in pieces that stay in the cache.
class SafetensorsWriter::File {
 public:
  explicit File(const fs::path& path) : writer_(path) {}

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

SafetensorsWriter::SafetensorsWriter(const fs::path& path, const NamedTensors& tensors,
                                     const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  for (const NamedTensor& item : tensors) {
    if (!item.tensor.defined()) {
      throw InternalError(fmt::format("tensor '{}' is not defined", printable(item.name)));
    }
  }
  for (const size_t i : safetensors_order(tensors)) {
    const auto& [name, tensor] = tensors[i];
    header.entries.push_back({.name = name,
                              .dtype = safetensors_name(tensor.scalar_type(), name),
                              .shape = tensor.sizes().vec()});
  }
  const std::string head = format_safetensors_header(header);
  file_ = std::make_unique<File>(path);
  file_->write(head.data(), head.size());
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::append(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
  file_->write(plain.const_data_ptr(), plain.nbytes());
}

WrittenFile SafetensorsWriter::finish() { return file_->finish(); }

}  // namespace gallop

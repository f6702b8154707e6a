#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gallop/tensor/safetensors.h"

namespace gallop {

/// The order in which a file stores these tensors: by descending alignment, then by name.
std::vector<size_t> safetensors_order(const NamedTensors& tensors);

/// Writes a new file tensor by tensor, so that not all of them need be in memory. Throws as
/// write_safetensors().
class SafetensorsWriter {
 public:
  /// Writes the header. Only names, sizes and types of the tensors are read, which may be on the
  /// meta device.
  SafetensorsWriter(const fs::path& path, const NamedTensors& tensors,
                    const std::map<std::string, std::string>& metadata = {});
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
  ~SafetensorsWriter();

  /// Writes the next tensor in safetensors_order(), of any device and memory format.
  void append(const at::Tensor& tensor);
  /// Syncs the file. Must follow the last tensor.
  WrittenFile finish();

 private:
  class File;
  std::unique_ptr<File> file_;
};

}  // namespace gallop

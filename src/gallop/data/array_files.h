#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/npy.h"
#include "gallop/tensor/zip_archive.h"

namespace gallop::data {

/// The arrays of a split, mapped into memory; those of compressed archives are decompressed.
class ArrayFiles {
 public:
  /// An .npz file, or a folder of .npy files. Throws DataError that names file and array.
  explicit ArrayFiles(const fs::path& path);

  const std::string& name() const { return name_; }
  /// By name, without ".npy".
  const std::map<std::string, NpyArray>& arrays() const { return arrays_; }
  const std::vector<std::string>& files() const { return files_; }

 private:
  void add(const std::string& name, const std::string& place, std::string_view content);

  std::string name_;
  std::unique_ptr<ZipArchive> archive_;
  std::vector<MappedFile> mapped_;
  std::map<std::string, NpyArray> arrays_;
  std::vector<std::string> files_;
};

}  // namespace gallop::data

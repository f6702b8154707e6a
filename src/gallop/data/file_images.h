#pragma once

#include <string>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// Image files given by path, without labels: label() is always 0.
class FileImages final : public ImageSet {
 public:
  explicit FileImages(std::vector<std::string> paths, bool orient = true);

  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }
  int64_t label(int64_t) const override { return 0; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string describe(int64_t index) const override { return paths_[static_cast<size_t>(index)]; }
  void read(int64_t index, const DecodeRequest& request, Image& image) const override;
  ImageHeader header(int64_t index) const override;

 private:
  std::vector<std::string> paths_;
  bool orient_;
  std::vector<std::string> class_names_{"unknown"};
};

/// The image files in a folder and its subfolders, sorted, excluding hidden ones. Throws DataError
/// if there are none.
std::vector<std::string> image_files_in(const std::string& folder);

}  // namespace gallop::data

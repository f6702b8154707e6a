#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/labeled_images.h"

namespace gallop::data {

/// Image files that are named relative to a folder. They are opened relative to it, which saves
/// resolving the whole path for each of them.
class FolderImages final : public LabeledImages {
 public:
  FolderImages(fs::path path, std::vector<std::string> class_names, bool orient,
               int64_t target_size = 0);

  /// `file` is relative to the folder, or absolute.
  void add(const std::string& file, int32_t label, std::span<const float> targets = {});

  std::string describe(int64_t index) const override;
  void read(int64_t index, const DecodeRequest& request, Image& image) const override;
  ImageHeader header(int64_t index) const override;
  std::string identity() const override;
  uint64_t stamp(int64_t index) const override;

 private:
  const char* name(int64_t index) const {
    return names_.data() + starts_[static_cast<size_t>(index)];
  }
  template <typename Use>
  void open(int64_t index, const Use& use) const;

  fs::path path_;
  FileDescriptor folder_;
  bool orient_;
  std::string names_;  // Each terminated by a zero byte.
  std::vector<size_t> starts_;
};

}  // namespace gallop::data
